"""`shapefix explain`, `shapefix rules` and `shapefix help`: pages to read."""

from __future__ import annotations

import click

from shapefix.cli.group import cli
from shapefix.report.formats import RULE_FORMATS


@cli.command(short_help="Explain a rule.")
@click.argument("rule")
@click.option("--examples", is_flag=True, help="Show more examples: what is reported, and what is not.")
def explain(rule: str, examples: bool) -> int:
    """Explain a rule: what it does, why, how to fix it, and when to ignore it.

    RULE is a code like SF101 or a name like view-across-stride-gap. A prefix like SF1 lists its rules.
    """
    from shapefix.cli.rules import explain

    return explain(rule, examples)


@cli.command()
@click.option("--output-format", type=click.Choice([*RULE_FORMATS]), default="text", help="Output format.")
def rules(output_format: str) -> int:
    """List all rules."""
    from shapefix.cli.rules import rules

    return rules(output_format)


@cli.command("help", short_help="Show the manual.")
@click.argument("topic", required=False)
@click.pass_context
def help_(context: click.Context, topic: str | None) -> None:
    """Show a topic of the manual, or without TOPIC the list of topics.

    The name of a command shows its options.
    """
    from shapefix.cli import manual

    assert context.parent is not None
    manual.show(topic, context.parent)
