"""The table of point-wise operations: FLOPs per element of the output.

One operation of arithmetic or one call of a mathematical function (exp, tanh, erf, a Bessel function, ...) is 1, whatever it costs in
hardware; a compare, minimum or maximum is 1; composed functions are the sum of their parts, as the comments spell out. Choosing,
logic on bools and moving bits is 0. Integers never count.
"""

from __future__ import annotations

PER_ELEMENT: dict[str, int] = {
    # arithmetic
    "add": 1, "sub": 1, "subtract": 1, "rsub": 1, "mul": 1, "multiply": 1, "div": 1, "divide": 1, "true_divide": 1, "floor_divide": 1,
    "neg": 1, "negative": 1, "abs": 1, "absolute": 1, "reciprocal": 1, "square": 1, "remainder": 1, "fmod": 1, "fix": 1, "pow": 1,
    "float_power": 1, "sqrt": 1, "rsqrt": 1, "ceil": 1, "floor": 1, "round": 1, "special_round": 1, "trunc": 1, "sign": 1, "sgn": 1,
    "copysign": 1, "deg2rad": 1, "rad2deg": 1, "nextafter": 1, "frexp": 1,
    "frac": 2,  # truncate, subtract
    "ldexp": 2,  # exp2, multiply
    "addcmul": 2, "addcdiv": 2,  # multiply or divide, add (3 with a value other than 1)
    "lerp": 3,  # subtract, multiply, add
    "hypot": 4,  # 2 multiply, add, square root
    "polar": 4,  # cos, sin, 2 multiply
    # compares; logic and choices are free
    "eq": 1, "ne": 1, "not_equal": 1, "lt": 1, "less": 1, "le": 1, "less_equal": 1, "gt": 1, "greater": 1, "ge": 1, "greater_equal": 1,
    "equal": 1, "isnan": 1, "isinf": 1, "isposinf": 1, "isneginf": 1, "isfinite": 1, "isreal": 1, "signbit": 1, "heaviside": 1,
    "maximum": 1, "minimum": 1, "fmax": 1, "fmin": 1, "clamp_min": 1, "clamp_max": 1,
    "clamp": 2, "clip": 2,  # one compare a side that is given
    "nan_to_num": 3,  # nan, positive and negative infinity
    "isclose": 4,  # subtract, abs, multiply-add of the tolerance, compare
    "where": 0, "masked_fill": 0, "complex": 0, "conj_physical": 0, "_conj_physical": 0,
    "logical_and": 0, "logical_or": 0, "logical_xor": 0, "logical_not": 0,
    "bitwise_and": 0, "bitwise_or": 0, "bitwise_xor": 0, "bitwise_not": 0, "bitwise_left_shift": 0, "bitwise_right_shift": 0,
    "__and__": 0, "__or__": 0, "__xor__": 0, "__lshift__": 0, "__rshift__": 0,
    "__iand__": 0, "__ior__": 0, "__ixor__": 0, "__ilshift__": 0, "__irshift__": 0,
    "gcd": 0, "lcm": 0,
    # mathematical functions, 1 a call
    "exp": 1, "exp2": 1, "special_exp2": 1, "expm1": 1, "special_expm1": 1, "log": 1, "log2": 1, "log10": 1, "log1p": 1,
    "special_log1p": 1, "sin": 1, "cos": 1, "tan": 1, "asin": 1, "arcsin": 1, "acos": 1, "arccos": 1, "atan": 1, "arctan": 1,
    "atan2": 1, "arctan2": 1, "sinh": 1, "cosh": 1, "tanh": 1, "asinh": 1, "arcsinh": 1, "acosh": 1, "arccosh": 1, "atanh": 1,
    "arctanh": 1, "erf": 1, "special_erf": 1, "erfc": 1, "special_erfc": 1, "erfinv": 1, "special_erfinv": 1, "angle": 1, "lgamma": 1,
    "special_gammaln": 1, "digamma": 1, "special_digamma": 1, "special_psi": 1, "polygamma": 1, "special_polygamma": 1, "mvlgamma": 1,
    "special_multigammaln": 1, "igamma": 1, "special_gammainc": 1, "igammac": 1, "special_gammaincc": 1, "i0": 1, "special_i0": 1,
    "special_i0e": 1, "special_i1": 1, "special_i1e": 1, "special_airy_ai": 1, "special_bessel_j0": 1, "special_bessel_j1": 1,
    "special_bessel_y0": 1, "special_bessel_y1": 1, "special_modified_bessel_i0": 1, "special_modified_bessel_i1": 1,
    "special_modified_bessel_k0": 1, "special_modified_bessel_k1": 1, "special_scaled_modified_bessel_k0": 1,
    "special_scaled_modified_bessel_k1": 1, "special_spherical_bessel_j0": 1, "special_chebyshev_polynomial_t": 1,
    "special_chebyshev_polynomial_u": 1, "special_chebyshev_polynomial_v": 1, "special_chebyshev_polynomial_w": 1,
    "special_hermite_polynomial_h": 1, "special_hermite_polynomial_he": 1, "special_laguerre_polynomial_l": 1,
    "special_legendre_polynomial_p": 1, "special_shifted_chebyshev_polynomial_t": 1, "special_shifted_chebyshev_polynomial_u": 1,
    "special_shifted_chebyshev_polynomial_v": 1, "special_shifted_chebyshev_polynomial_w": 1, "special_erfcx": 1,
    "special_log_ndtr": 1, "special_ndtr": 1, "special_ndtri": 1, "special_zeta": 1,
    "xlogy": 2, "special_xlogy": 2, "special_xlog1py": 2, "special_entr": 2,  # logarithm, multiply
    "logit": 3, "special_logit": 3,  # subtract, divide, logarithm
    "sinc": 3, "special_sinc": 3,  # multiply, sin, divide
    "logaddexp": 5, "logaddexp2": 5,  # maximum, subtract, exp, log1p, add
    # activations
    "relu": 1, "threshold": 1,
    "relu6": 2, "hardtanh": 2,  # two compares
    "leaky_relu": 2, "prelu": 2, "_prelu_kernel": 2, "rrelu": 2,  # compare, multiply
    "hardshrink": 2,  # two compares
    "softshrink": 3,  # two compares, add
    "_add_relu": 2,  # add, compare
    "sigmoid": 4, "special_expit": 4,  # negate, exp, add, divide
    "hardsigmoid": 4,  # add, two compares, divide
    "mish": 4,  # exp, log1p, tanh, multiply
    "elu": 4,  # compare, exp, subtract, multiply
    "silu": 5, "glu": 5,  # sigmoid, multiply
    "hardswish": 5,  # hardsigmoid, multiply
    "celu": 5, "selu": 5,  # elu, and a divide or multiply
    "softplus": 5,  # multiply, exp, log1p, divide, compare
    "gelu": 5,  # divide, erf, add, 2 multiply
    "gelu(tanh)": 9,  # 0.5 x (1 + tanh(c (x + 0.044715 x^3))): 6 multiply, 2 add, tanh
    "log_sigmoid": 6, "log_sigmoid_forward": 6,  # minimum, abs, negate, exp, log1p, subtract
    # gradients that are point-wise themselves
    "threshold_backward": 1, "native_dropout_backward": 2, "sigmoid_backward": 3, "tanh_backward": 3, "logit_backward": 3,
    "silu_backward": 9,  # sigmoid, 2 subtract or add, 3 multiply
    "gelu_backward": 11,  # erf, exp, 9 multiply and add
    # dropout in training: multiply by the mask, rescale
    "_masked_scale": 2,
}  # fmt: skip
"""FLOPs per output element, by the op's name without ``aten::`` and without the underscore of its in-place twin."""

COMPLEX_PER_ELEMENT: dict[str, int] = {
    "mul": 6,  # 4 multiply, 2 add
    "square": 6,
    "div": 11,  # multiply by the conjugate 6, its squared modulus 3, 2 divide
    "reciprocal": 6,  # squared modulus 3, 2 divide, negate
    "abs": 4,  # 2 multiply, add, square root
    "sgn": 6,  # modulus, 2 divide
    "angle": 1,
    "exp": 5,  # exp, sin, cos, 2 multiply
    "log": 6,  # modulus, logarithm, atan2
    "addcmul": 8, "addcdiv": 13,
    "sigmoid": 20,  # negate 2, exp 5, add 2, divide 11
    "silu": 26,
    "conj_physical": 1, "_conj_physical": 1,  # negate the imaginary part
}  # fmt: skip
"""Real FLOPs per complex element, where they are not twice the real ones."""

ACTIVATIONS = (
    "relu", "threshold", "relu6", "hardtanh", "leaky_relu", "prelu", "_prelu_kernel", "rrelu", "hardshrink", "softshrink", "_add_relu",
    "sigmoid", "special_expit", "hardsigmoid", "mish", "elu", "silu", "glu", "hardswish", "celu", "selu", "softplus", "log_sigmoid",
    "log_sigmoid_forward", "tanh", "threshold_backward", "sigmoid_backward", "tanh_backward", "silu_backward", "gelu_backward",
)  # fmt: skip
"""The names in the table that networks use as activation functions; gelu has a formula of its own."""

FOREACH = (
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min", "cos", "cosh", "div", "erf", "erfc",
    "exp", "expm1", "floor", "frac", "lerp", "lgamma", "log", "log10", "log1p", "log2", "maximum", "minimum", "mul", "neg", "pow",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh", "trunc",
)  # fmt: skip
"""The names in the table that have a variant over lists of tensors, ``aten::_foreach_add``."""

REAL_DTYPE = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
"""Dtype of the parts of a complex number."""
