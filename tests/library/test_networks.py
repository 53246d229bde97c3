"""Networks as people write them: the sizes and strides that are inferred are those that torch computes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import networks_for_pixels
import networks_of_blocks
import networks_of_parts
import networks_of_sequences
import networks_of_sets
import networks_of_signals
import networks_that_classify
import networks_that_generate
import networks_with_attention
import pytest
from differential import SIZES, compare, executed, revealed

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.layout import has_unknown_strides

NETWORKS = {
    **networks_that_classify.NETWORKS,
    **networks_of_blocks.NETWORKS,
    **networks_for_pixels.NETWORKS,
    **networks_that_generate.NETWORKS,
    **networks_of_sets.NETWORKS,
    **networks_of_sequences.NETWORKS,
    **networks_of_signals.NETWORKS,
    **networks_with_attention.NETWORKS,
    **networks_of_parts.NETWORKS,
}
KNOWN = ", ".join(SIZES) + " = " + ", ".join(map(str, SIZES.values())) + "\n"
NOT_KNOWN = ", ".join(SIZES) + " = sizes()\n"

pytestmark = pytest.mark.filterwarnings("ignore")


def agree(head: str, source: str, *, require_sizes: bool) -> None:
    """Check that whatever the interpreter knows of the values that a network reveals is so."""
    ours, real = revealed(head + source), executed(KNOWN + source)
    assert len(ours) == len(real) > 0, f"{len(real)} values revealed by torch, {len(ours)} by the interpreter"
    for one, other in zip(ours, real, strict=True):
        compare(one, other, require_sizes=require_sizes)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_the_sizes_and_strides_of_torch(name: str) -> None:
    agree(KNOWN, textwrap.dedent(NETWORKS[name]), require_sizes=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_has_them_for_batches_of_any_size(name: str) -> None:
    agree(NOT_KNOWN, textwrap.dedent(NETWORKS[name]), require_sizes=False)


def test_strides_are_known_but_for_a_product_that_torch_orders_itself(
    record_property: Callable[[str, object], None],
) -> None:
    count, unknown = 0, []
    for name, source in NETWORKS.items():
        for value in revealed(KNOWN + textwrap.dedent(source)):
            assert isinstance(value, TensorValue)
            assert value.layout is not None
            count += 1
            unknown += [name] if has_unknown_strides(value.layout) else []
    counts = f"{len(NETWORKS)} networks show {count} tensors: all sizes known, {count - len(unknown)} strides"
    print(counts)
    record_property("counted", counts)
    assert len(NETWORKS) >= 40
    assert unknown == ["mixture of experts"]
