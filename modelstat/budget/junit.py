"""The check as JUnit XML, which CI systems show as tests: one suite, one test case per budget and limit."""

from __future__ import annotations

from typing import TextIO
from xml.etree import ElementTree

from modelstat.budget.human import details
from modelstat.budget.result import Checked, Measure, Outcome
from modelstat.report.grid import printable


def write(checked: Checked, file: TextIO) -> None:
    """Write the XML to ``file``. A budget that could not be checked is one test case with an error."""
    cases = [case for outcome in checked.outcomes for case in _cases(outcome)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
    }
    suites = ElementTree.Element("testsuites", {"name": "modelstat check", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": printable(checked.file), "skipped": "0", **counts})
    suite.extend(cases)
    ElementTree.indent(suites)
    file.write(f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n')


def _cases(outcome: Outcome) -> list[ElementTree.Element]:
    if outcome.error is not None:
        case = _case(outcome, "check")
        ElementTree.SubElement(case, "error", {"message": printable(outcome.error), "type": "BudgetError"})
        return [case]
    return [_measured(outcome, measure) for measure in outcome.measures]


def _measured(outcome: Outcome, measure: Measure) -> ElementTree.Element:
    case = _case(outcome, measure.name)
    if measure.passed:
        ElementTree.SubElement(case, "system-out").text = measure.message
    else:
        failure = ElementTree.SubElement(case, "failure", {"message": measure.message, "type": measure.limit})
        failure.text = "\n".join(details(outcome))
    return case


def _case(outcome: Outcome, name: str) -> ElementTree.Element:
    attributes = {"classname": printable(outcome.budget), "name": name, "file": printable(outcome.file), "time": "0"}
    return ElementTree.Element("testcase", attributes | ({} if outcome.line is None else {"line": str(outcome.line)}))
