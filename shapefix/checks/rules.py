"""All rules: importing this module fills the table."""

from shapefix.checks.batches import (
    device_of_non_tensor,
    list_of_tensors,
    trainer_columns,
    unexpected_batch_key,
)
from shapefix.checks.collation import (
    padding_inside_map,
    ragged_labels,
    short_last_chunk,
    tensor_of_ragged_rows,
    tensors_without_padding,
)
from shapefix.checks.devices import gradient_scaling_order, left_on_the_cpu, two_devices, untrained_parameters
from shapefix.checks.dimensions import (
    broadcast_sizes,
    channels,
    embedding_range,
    impossible_shape_operation,
    in_features,
    joined_sizes,
    loss_sizes,
    matrix_product,
    norm_features,
    refused_dtype,
    sequential_mismatch,
    silent_broadcast,
)
from shapefix.checks.labels import (
    eos_masked_in_labels,
    labels_shifted_twice,
    masked_labels_overwritten,
    padding_in_the_loss,
    shallow_label_copy,
)
from shapefix.checks.layout import discarded_shape_operation, view_across_stride_gap, write_into_expanded
from shapefix.checks.memory import (
    accumulated_graph,
    checkpoint_without_gradients,
    out_of_memory_handler,
    recorded_evaluation,
)
from shapefix.checks.registry import RULES, Rule, findings
from shapefix.checks.training import (
    cut_losses,
    saturated_metric,
    swallowed_exception,
    training_mode,
    training_step_order,
)

MODULES = (
    accumulated_graph,
    silent_broadcast,
    left_on_the_cpu,
    channels,
    checkpoint_without_gradients,
    short_last_chunk,
    ragged_labels,
    cut_losses,
    two_devices,
    discarded_shape_operation,
    refused_dtype,
    broadcast_sizes,
    embedding_range,
    eos_masked_in_labels,
    recorded_evaluation,
    in_features,
    joined_sizes,
    unexpected_batch_key,
    shallow_label_copy,
    masked_labels_overwritten,
    padding_in_the_loss,
    labels_shifted_twice,
    view_across_stride_gap,
    list_of_tensors,
    loss_sizes,
    padding_inside_map,
    saturated_metric,
    training_mode,
    device_of_non_tensor,
    sequential_mismatch,
    norm_features,
    out_of_memory_handler,
    tensors_without_padding,
    matrix_product,
    gradient_scaling_order,
    training_step_order,
    impossible_shape_operation,
    tensor_of_ragged_rows,
    swallowed_exception,
    trainer_columns,
    untrained_parameters,
    write_into_expanded,
)

__all__ = ["RULES", "Rule", "findings"]
