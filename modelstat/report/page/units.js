"use strict";
// Quantities as text, as modelstat/units.py prints them; a test compares the two.

const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];

function scaled(value, full) {
  let index = 0;
  while (Math.abs(full(value)) >= 1000 && index < PREFIXES.length - 1) { value /= 1000; index += 1; }
  return [value, PREFIXES[index]];
}

const significant = (value) => value.toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0);

// So many significant digits; exponents below 1e-4 and of two places, as Python has them.
function general(value, digits) {
  const rounded = Number(value.toPrecision(digits));
  const text = rounded !== 0 && Math.abs(rounded) < 1e-4 ? rounded.toExponential() : String(rounded);
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

function withUnit(value, unit) {
  if (Math.abs(value) < 1000) return `${general(value, 6)}${unit && " " + unit}`;
  const [number, prefix] = scaled(value, (each) => Number(each.toFixed(2)));
  return `${number.toFixed(2)} ${prefix}${unit}`;
}

const units = {
  count: (value) => withUnit(value, ""),
  bytes: (value) => withUnit(value, "B"),
  rate(value) {
    let index = 0;
    while (Math.abs(value) >= 999.5 && index < PREFIXES.length - 1) { value /= 1000; index += 1; }
    return `${significant(value)} ${PREFIXES[index]}FLOP/s`;
  },
  bandwidth(value) {
    const giga = value / 1e9;
    return `${giga >= 1000 ? giga.toFixed(0) : general(giga, 4)} GB/s`;
  },
  seconds(value) {
    if (value === 0) return "0 s";
    for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]) {
      if (Math.abs(value) >= 0.9995 * scale) return `${significant(value / scale)} ${unit}`;
    }
    return `${general(value * 1e9, 3)} ns`;
  },
  ratio: (value) => value.toFixed(2),
  percent: (value) => `${(100 * value).toFixed(1)} %`,
  perSecond(value) {
    const rounded = Number(value.toPrecision(3));
    return rounded >= 100 ? rounded.toLocaleString("en-US", { maximumFractionDigits: 0 }) : general(rounded, 6);
  },
  text: (value) => value,
};

// "-" is what is unknown or does not apply: never zero.
const told = (kind, value) => (value === null || value === undefined ? "-" : units[kind](value));
