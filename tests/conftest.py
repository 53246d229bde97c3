"""What tests have counted is shown at the end of a run, also where they pass."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in getattr(report, "user_properties", ()):
                if name == "counted":
                    terminalreporter.write_line(str(value))
