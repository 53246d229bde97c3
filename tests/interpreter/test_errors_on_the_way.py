"""try, except, finally and with."""

from __future__ import annotations

from pathlib import Path

from revealed import analysed, holds


def test_an_exception_may_come_at_any_point(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import work

        x = torch.zeros(2, 3)
        try:
            x = torch.zeros(3, 2).t()
            work()
            x = torch.zeros(2, 3)
        except ValueError:
            reveal(x)  # f32[2, 3] strides unknown
            x = torch.ones(2, 3)
        else:
            reveal(x)  # f32[2, 3]
        reveal(x)  # f32[2, 3]
        """,
        tmp_path,
    )


def test_a_handler_that_raises_does_not_count(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import work

        try:
            x = work()
        except ValueError as error:
            raise RuntimeError from error
        except KeyError:
            x = torch.zeros(2)
        finally:
            y = torch.zeros(3)
        reveal(x)  # unknown
        reveal(y)  # f32[3]
        """,
        tmp_path,
    )


def test_finally_runs_after_a_return(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def f(x):
            try:
                x = x[0]
                return x
            finally:
                reveal(x)  # f32[...]

        reveal(f(torch.zeros(2, 3)))  # f32[3]
        """,
        tmp_path,
    )


def test_with_blocks_are_run(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import context

        with torch.no_grad(), context() as value:
            x = torch.zeros(2)
        reveal(x)  # f32[2]
        reveal(value)  # unknown
        """,
        tmp_path,
    )


def test_whoever_expects_a_failure_is_not_told_of_it(tmp_path: Path) -> None:
    text = """
    import contextlib, pytest, torch

    x = torch.zeros(2, 3).t()
    with pytest.raises(RuntimeError):
        x.view(-1)
    with contextlib.suppress(RuntimeError):
        x.view(-1)
    try:
        x.view(-1)
    except RuntimeError:
        pass
    y = x.view(6)
    """
    assert [d.span.row for d in analysed(text, tmp_path).diagnostics if d.code == "SF101"] == [13]
