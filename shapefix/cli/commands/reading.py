"""`shapefix explain`, `rules`, `config` and `help`: pages to read."""

from __future__ import annotations

from copy import copy

import click

from shapefix.cli.group import cli
from shapefix.cli.options import completed_by, text_or_json_option
from shapefix.report.formats import RULE_FORMATS


@cli.command(short_help="Explain a rule.")
@click.argument("rule", required=False, shell_complete=completed_by("rules"))
@click.option("--all", "every", is_flag=True, help="Explain all rules.")
@click.option("--examples", is_flag=True, help="Show more examples of what is reported and what is not.")
@text_or_json_option
def explain(rule: str | None, every: bool, examples: bool, output_format: str) -> int:
    """Explain a rule: what it does, why, how to fix it, and when to ignore it.

    RULE is a code like SF101 or a name like view-across-stride-gap. A prefix like SF1 lists its rules.
    """
    from shapefix.cli.rules import explain, explain_all

    if every == (rule is not None):
        raise click.UsageError("--all and a rule cannot be combined" if every else "missing argument 'RULE'")
    return explain_all(examples, output_format) if rule is None else explain(rule, examples, output_format)


_rule = copy(explain)
_rule.name, _rule.short_help = "rule", "Explain a rule, as `explain` does."
cli.add_command(_rule)


@cli.command()
@click.option("--output-format", type=click.Choice([*RULE_FORMATS]), default="text", help="Output format.")
def rules(output_format: str) -> int:
    """List all rules."""
    from shapefix.cli.rules import rules

    return rules(output_format)


@cli.command("config", short_help="List or describe the keys of the configuration.")
@click.argument("key", required=False, shell_complete=completed_by("keys"))
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", "schema"]),
    default="text",
    show_default=True,
    help="Output format; schema is a JSON schema for editors.",
)
@click.option("--apply", is_flag=True, help="With `config ruff`: write the setting to ruff's configuration.")
def config(key: str | None, output_format: str, apply: bool) -> int:
    """List the keys of the configuration file, or describe KEY.

    `shapefix config ruff` shows the setting with which ruff keeps `# noqa: SF101` comments. ruff's RUF100
    or RUF102 removes them otherwise, depending on its version.
    """
    if apply and key != "ruff":
        raise click.UsageError("--apply is for `shapefix config ruff`")
    if key == "ruff":
        from shapefix.cli.ruff_configuration import ruff_configuration

        return ruff_configuration(apply)
    from shapefix.cli.configuration import describe

    return describe(key, output_format)


@cli.command("help", short_help="Show the manual.")
@click.argument("topic", required=False, shell_complete=completed_by("topics"))
@click.pass_context
def help_(context: click.Context, topic: str | None) -> None:
    """Show a topic of the manual, or the list of topics.

    With the name of a command, show its options.
    """
    from shapefix.cli import manual

    assert context.parent is not None
    manual.show(topic, context.parent)
