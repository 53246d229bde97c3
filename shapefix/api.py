"""The public functions: the results of the commands as Python values."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH109, PTH123

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Sequence
from tokenize import detect_encoding
from typing import TypeAlias

from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log, diagnose_notebook
from shapefix.diagnosis.log_lines import log_lines
from shapefix.diagnostics import Diagnostic, Failure, Unchecked
from shapefix.engine.batch import project_root_of
from shapefix.engine.session import CheckSession, StandardInput
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.engine.source_overlay import real_path
from shapefix.sizes.listings import ShapeListing
from shapefix.sizes.run import shapes as listings_of
from shapefix.sizes.run import split_name
from shapefix.sources.text import is_notebook

FilePath: TypeAlias = str | os.PathLike[str]


class Findings(list[Diagnostic]):
    """The findings of a check, in the order of its report.

    failures are the files and folders that could not be checked, unchecked the places of checked files with
    an unknown value. answers are those to `reveal(x)`. session has the checked texts.
    """

    def __init__(self, session: CheckSession) -> None:
        reported = session.findings()
        super().__init__(finding for finding in reported if not finding.is_answer)
        self.answers: tuple[Diagnostic, ...] = tuple(each for each in reported if each.is_answer)
        self.failures: tuple[Failure, ...] = session.failures()
        self.unchecked: tuple[Unchecked, ...] = session.unchecked()
        self.session = session


def check(
    paths: FilePath | Iterable[FilePath],
    *,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    preview: bool | None = None,
    config: FilePath | None = None,
    isolated: bool = False,
    transformers_version: str | None = None,
    use_cache: bool = True,
    jobs: int = 1,
) -> Findings:
    """Return the findings in files and folders, as `shapefix check` does.

    The arguments are the options of the command. jobs above 1 starts processes. Raises ConfigurationError
    for an invalid option or configuration; a file that cannot be checked is one of the failures of the
    result.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    options = CheckOptions(
        select=None if select is None else tuple(select),
        ignore=tuple(ignore),
        extend_select=tuple(extend_select),
        preview=preview,
        config=None if config is None else os.fspath(config),
        isolated=isolated,
        transformers_version=transformers_version,
        use_cache=use_cache,
        jobs=jobs,
    )
    return Findings(CheckSession([os.fspath(each) for each in given], Settings(options)).run())


def check_source(
    text: str,
    filename: FilePath | None = None,
    *,
    select: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    isolated: bool = False,
    transformers_version: str | None = None,
) -> Findings:
    """Return the findings in a text of Python, or of a notebook if filename ends in .ipynb.

    filename need not exist: it selects the configuration, resolves imports, and is the path in the findings,
    "-" without one. The options and exceptions are those of check.
    """
    options = CheckOptions(
        select=None if select is None else tuple(select),
        ignore=tuple(ignore),
        extend_select=tuple(extend_select),
        isolated=isolated,
        transformers_version=transformers_version,
        use_cache=False,
        jobs=1,
    )
    name = None if filename is None else os.fspath(filename)
    standard_input = StandardInput(_encoded(text), name)
    return Findings(CheckSession(["-"], Settings(options), standard_input).run())


def shapes(
    target: FilePath, inputs: str | Sequence[str] = (), *, transformers_version: str | None = None
) -> list[ShapeListing]:
    """Return the source of functions with the sizes in it, as `shapefix shapes` does; str() is its text.

    target is a file, or a class or function in it: `model.py:UNet`. inputs are values of parameters:
    `x: f32[8, 3, H, W]`. Raises BadInput, UnknownTarget and ListingFailed.
    """
    path, name = split_name(os.fspath(target))
    given = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    settings = Settings(CheckOptions(transformers_version=transformers_version))
    at = real_path(path)
    version = settings.transformers_version(at, project_root_of(at, ()))
    signatures = dict(settings.configuration(at).signatures)
    return listings_of(path, name, given, settings.rules(at), version, signatures)


def diagnose(
    log: str | os.PathLike[str],
    folder: FilePath | None = None,
    *,
    isolated: bool = False,
    transformers_version: str | None = None,
) -> Diagnosis | None:
    """Return the diagnosis of the last error in a log, as `shapefix diagnose` does; None without an error.

    log is the text of a log, or the path of one, or of a notebook, as a pathlib.Path. folder is that of the
    project, by default the current one. str() of a diagnosis is its text. Raises OSError for a path that
    cannot be read, and ConfigurationError.
    """
    base = os.getcwd() if folder is None else os.path.realpath(folder)
    options = CheckOptions(isolated=isolated, transformers_version=transformers_version, jobs=1)
    if isinstance(log, str):
        return diagnose_log(log_lines(io.BytesIO(log.encode("utf-8", "surrogatepass"))), base, options)
    path = os.fspath(log)
    if is_notebook(path):
        return diagnose_notebook(path, base, options)
    with open(path, "rb") as stream:
        return diagnose_log(log_lines(stream), base, options)


def _encoded(text: str) -> bytes:
    """Encode a text as declared in its first lines."""
    data = text.encode("utf-8", "surrogatepass")
    try:
        encoding, _ = detect_encoding(io.BytesIO(data).readline)
        return text.encode(encoding)
    except (SyntaxError, LookupError, UnicodeEncodeError):
        return data
