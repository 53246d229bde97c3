"""`shapefix explain` and `shapefix rules`."""

from __future__ import annotations

import re
import sys

import click

from shapefix.cli.exit_codes import CLEAN
from shapefix.cli.output import write
from shapefix.cli.pager import show_markdown
from shapefix.report.formats import RULE_FORMATS
from shapefix.report.rule_table import render_page_json, render_pages_json
from shapefix.rulebook.pages import page_of, pages, pages_under
from shapefix.sources.configuration import suggestion


def explain(rule: str, examples: bool, output_format: str) -> int:
    """Show the page of a rule, or list the rules of a prefix. Raises MissingPages and click.UsageError."""
    page = page_of(rule)
    if page is not None:
        if output_format == "json":
            write(render_page_json(page, examples))
            return CLEAN
        hint = f"`shapefix explain {page.code} --examples` shows more examples.\n"
        show_markdown(page.text(examples), "" if examples else hint)
        return CLEAN
    below = pages_under(rule)
    if below and output_format == "json":
        write(render_pages_json(below, examples))
        return CLEAN
    if below:
        width_of_names = max(len(each.name) for each in below)
        for each in below:
            sys.stdout.write(f"{each.code}  {each.name:<{width_of_names}}  {each.summary}\n")
        return CLEAN
    if re.fullmatch(r"[A-Za-z]+\d+", rule) and not rule.upper().startswith("SF"):
        raise click.UsageError(f"{rule!r} is not a shapefix rule; `shapefix rules` lists all rules")
    known = [name for each in pages() for name in (each.code, each.name)]
    spelled = rule.upper() if rule.upper().startswith("SF") else rule.lower()
    hint = suggestion(spelled, known, "; `shapefix rules` lists all rules")
    raise click.UsageError(f"unknown rule {rule!r}{hint}")


def explain_all(examples: bool, output_format: str) -> int:
    """Show the pages of all rules."""
    if output_format == "json":
        write(render_pages_json(pages(), examples))
    else:
        show_markdown("\n".join(page.text(examples) for page in pages()))
    return CLEAN


def rules(output_format: str) -> int:
    """List all rules with their summaries."""
    write(RULE_FORMATS[output_format].render(pages()))
    return CLEAN
