"""Tensor algebra: symbolic sizes, strides, view legality and dtypes.

A function lives in the module of its subject and is imported from there: `concat` (cat, stack, gather, pad),
`convolutions`, `dims` (transpose, permute, squeeze, expand), `indexing`, `networks` (normalization,
recurrence, attention), `products` (matmul, linear, einsum), `reductions`, `views` (reshape, flatten),
`legality` (view). They take layouts, sizes and plain numbers, return the layout of torch's result, and raise
ShapeError only where torch raises for all values of the symbols.
"""
