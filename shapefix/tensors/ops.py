"""Tensor-creating operations, in torch's terms."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Op(Enum):
    """Operation of torch, numpy or a model; `text` is its participle in evidence.

    Elementwise operations have torch's name as their value and are found by it, see `named`. The others are
    families of torch's documentation (creation, reduction, pooling) unless a rule needs to distinguish them.
    """

    text: str

    def __new__(cls, name: str, text: str = "") -> Op:
        """Create a member with the name as its value; without a text, the name is shown."""
        op = object.__new__(cls)
        op._value_ = name
        op.text = text or name
        return op

    # Views.
    VIEW = "view", "viewed"
    RESHAPE = "reshape", "reshaped"
    FLATTEN = "flatten", "flattened"
    UNFLATTEN = "unflatten", "unflattened"
    TRANSPOSE = "transpose", "transposed"
    PERMUTE = "permute", "permuted"
    MOVEDIM = "movedim", "moved"
    SQUEEZE = "squeeze", "squeezed"
    UNSQUEEZE = "unsqueeze", "unsqueezed"
    EXPAND = "expand", "expanded"
    NARROW = "narrow", "narrowed"
    SELECT = "select", "selected"
    SLICE = "slice", "sliced"
    INDEX = "index", "indexed"
    SPLIT = "split", "split"
    UNBIND = "unbind", "unbound"
    DIAGONAL = "diagonal", "diagonal taken"
    UNFOLD = "unfold", "unfolded"
    DETACH = "detach", "detached"
    VIEW_AS_REAL = "view_as_real", "viewed as real"
    VIEW_AS_COMPLEX = "view_as_complex", "viewed as complex"
    REAL_OR_IMAG = "real_or_imag", "taken apart"
    REARRANGE = "rearrange", "rearranged"
    # Copies and conversions.
    CLONE = "clone", "cloned"
    CONTIGUOUS = "contiguous", "made contiguous"
    CHANNELS_LAST = "channels_last", "made channels_last"
    TO = "to", "copied"
    TO_DTYPE = "to_dtype", "converted"
    TENSOR = "tensor", "copied"
    TRIANGLE = "triangle", "copied"
    FROM_NUMPY = "from_numpy", "taken from numpy"
    NUMPY_CREATION = "numpy_creation", "created by numpy"
    NUMPY_CONVERSION = "numpy_conversion", "converted by numpy"
    # New tensors.
    CREATION = "creation", "created"
    PARAMETER = "parameter", "created"
    MESHGRID = "meshgrid", "expanded"
    RANDOM_SAMPLING = "random_sampling", "drawn"
    # Several tensors as one, and elements picked by index.
    CAT = "cat", "joined"
    STACK = "stack", "stacked"
    BLOCK_DIAG = "block_diag", "joined"
    PAD = "pad", "padded"
    PAD_SEQUENCE = "pad_sequence", "padded"
    PACKED_SEQUENCE = "packed_sequence", "packed"
    REPEAT = "repeat", "repeated"
    ROLL = "roll", "rolled"
    FLIP = "flip", "reordered"
    ARGSORT = "argsort", "reordered"
    SORT = "sort", "sorted"
    TOPK = "topk", "selected"
    GATHER = "gather", "gathered"
    INDEX_SELECT = "index_select", "selected"
    MASKED_SELECT = "masked_select", "selected"
    SCATTER = "scatter", "scattered"
    MASKED_FILL = "masked_fill", "filled"
    SEARCHSORTED = "searchsorted", "looked up"
    ONE_HOT = "one_hot", "encoded"
    # Along dimensions.
    REDUCTION = "reduction", "reduced"
    CUMULATIVE = "cumulative", "summed"
    SOFTMAX = "softmax", "softmax applied"
    LOG_SOFTMAX = "log_softmax", "log_softmax applied"
    SOFTMIN = "softmin", "softmin applied"
    GUMBEL_SOFTMAX = "gumbel_softmax", "gumbel_softmax applied"
    NORMALIZE = "normalize", "scaled to unit norm"
    # Products and linear algebra.
    MATMUL = "matmul", "multiplied"
    ADDMM = "addmm", "multiplied and added"
    EINSUM = "einsum", "contracted"
    INVERSE = "inverse", "inverted"
    DIAG = "diag", "diagonal taken"
    POLAR = "polar", "composed"
    # Layers.
    LINEAR = "linear", "multiplied"
    BILINEAR = "bilinear", "multiplied"
    CDIST = "cdist", "distances computed"
    COSINE_SIMILARITY = "cosine_similarity", "reduced"
    PAIRWISE_DISTANCE = "pairwise_distance", "reduced"
    ATTENTION = "scaled_dot_product_attention", "attended"
    MULTIHEAD_ATTENTION = "multihead_attention", "returned by nn.MultiheadAttention"
    TRANSFORMER_LAYER = "transformer_layer", "returned by a Transformer layer"
    TRANSFORMER = "transformer", "returned by nn.Transformer"
    RNN = "rnn", "returned by nn.RNN"
    LSTM = "lstm", "returned by nn.LSTM"
    GRU = "gru", "returned by nn.GRU"
    RECURRENT_CELL = "recurrent_cell", "returned by a recurrent cell"
    CONVOLUTION = "convolution", "convolved"
    POOLING = "pooling", "pooled"
    BATCH_NORM = "batch_norm", "batch-normalized"
    LAYER_NORM = "layer_norm", "layer-normalized"
    GROUP_NORM = "group_norm", "group-normalized"
    INSTANCE_NORM = "instance_norm", "instance-normalized"
    RMS_NORM = "rms_norm", "RMS-normalized"
    LOCAL_RESPONSE_NORM = "local_response_norm", "normalized over channels"
    ACTIVATION = "activation", "activated"
    GLU = "glu", "gated"
    DROPOUT = "dropout", "dropped out"
    EMBEDDING = "embedding", "embedded"
    INTERPOLATE = "interpolate", "resized"
    GRID_SAMPLE = "grid_sample", "sampled"
    PIXEL_SHUFFLE = "pixel_shuffle", "shuffled"
    IM2COL = "im2col", "unfolded"
    COL2IM = "col2im", "folded"
    LOSS = "loss", "compared"
    GRAD_SCALE = "grad_scale", "scaled"
    MODULE_CALL = "module_call", "computed by a module"
    MODEL_LOSS = "model_loss", "computed"
    MODEL_OUTPUT = "model_output", "returned by the model"
    # Data.
    TOKENIZE = "tokenize", "tokenized"
    COLLATE = "collate", "collated"
    DATASET_ITEM = "dataset_item", "loaded"
    IMAGE_TO_TENSOR = "image_to_tensor", "converted"
    IMAGE_RESIZE = "image_resize", "resized"
    IMAGE_CROP = "image_crop", "cropped"
    IMAGE_ROTATE = "image_rotate", "turned"
    IMAGE_GRAYSCALE = "image_grayscale", "made gray"
    IMAGE_RGB = "image_rgb", "colored"
    IMAGE_NORMALIZE = "image_normalize", "normalized"
    IMAGE_TRANSFORM = "image_transform", "transformed"
    # Elementwise, of one tensor.
    ABS = "abs"
    NEG = "neg"
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    EXP = "exp"
    EXP2 = "exp2"
    EXPM1 = "expm1"
    LOG = "log"
    LOG2 = "log2"
    LOG10 = "log10"
    LOG1P = "log1p"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    SINH = "sinh"
    COSH = "cosh"
    TANH = "tanh"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SIGMOID = "sigmoid"
    ERF = "erf"
    ERFC = "erfc"
    ERFINV = "erfinv"
    RECIPROCAL = "reciprocal"
    SQUARE = "square"
    SIGN = "sign"
    SGN = "sgn"
    ROUND = "round"
    FLOOR = "floor"
    CEIL = "ceil"
    TRUNC = "trunc"
    FRAC = "frac"
    RELU = "relu"
    LOGICAL_NOT = "logical_not"
    BITWISE_NOT = "bitwise_not"
    ISNAN = "isnan"
    ISINF = "isinf"
    ISFINITE = "isfinite"
    NAN_TO_NUM = "nan_to_num"
    LOGIT = "logit"
    DEG2RAD = "deg2rad"
    RAD2DEG = "rad2deg"
    LGAMMA = "lgamma"
    DIGAMMA = "digamma"
    CLAMP = "clamp"
    CLAMP_MIN = "clamp_min"
    CLAMP_MAX = "clamp_max"
    # Elementwise, of several tensors.
    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    FLOOR_DIVIDE = "floor_divide"
    REMAINDER = "remainder"
    FMOD = "fmod"
    POW = "pow"
    ATAN2 = "atan2"
    MAX = "max"
    MIN = "min"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    FMAX = "fmax"
    FMIN = "fmin"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    ISCLOSE = "isclose"
    LOGICAL_AND = "logical_and"
    LOGICAL_OR = "logical_or"
    LOGICAL_XOR = "logical_xor"
    BITWISE_AND = "bitwise_and"
    BITWISE_OR = "bitwise_or"
    BITWISE_XOR = "bitwise_xor"
    BITWISE_LEFT_SHIFT = "bitwise_left_shift"
    BITWISE_RIGHT_SHIFT = "bitwise_right_shift"
    LERP = "lerp"
    ADDCMUL = "addcmul"
    ADDCDIV = "addcdiv"
    HYPOT = "hypot"
    XLOGY = "xlogy"
    LOGADDEXP = "logaddexp"
    COPYSIGN = "copysign"
    HEAVISIDE = "heaviside"
    WHERE = "where"

    @staticmethod
    def named(name: str) -> Op:
        """Operation named by torch or by Python's module operator. Raises ValueError for other names."""
        return Op(ALIASES.get(name, name))


ALIASES: Final = {
    "absolute": "abs",
    "negative": "neg",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "clip": "clamp",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "expit": "sigmoid",
    "truediv": "div",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
"""Other names of elementwise operations, those of Python's operators included."""

SOFTMAXES: Final = frozenset({Op.SOFTMAX, Op.LOG_SOFTMAX, Op.SOFTMIN, Op.GUMBEL_SOFTMAX})
NORMALIZATIONS: Final = frozenset(
    {Op.BATCH_NORM, Op.LAYER_NORM, Op.GROUP_NORM, Op.INSTANCE_NORM, Op.RMS_NORM, Op.LOCAL_RESPONSE_NORM}
)
PRODUCTS: Final = frozenset({Op.MATMUL, Op.ADDMM, Op.EINSUM, Op.LINEAR, Op.BILINEAR, Op.CDIST})
PADDED: Final = frozenset({Op.PAD, Op.PAD_SEQUENCE})
JOINED: Final = frozenset({Op.CAT, Op.BLOCK_DIAG})

ARITHMETIC: Final = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
COMPARISONS: Final = ("lt", "le", "gt", "ge", "eq", "ne")
OPERATORS: Final = (*ARITHMETIC, "and", "or", "xor", "lshift", "rshift", *COMPARISONS)
"""Python's names of the binary elementwise operators, as in its module `operator`."""

BINARY_NAMES: Final = (
    "add",
    "sub",
    "subtract",
    "mul",
    "multiply",
    "div",
    "divide",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "atan2",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "greater",
    "less",
    "greater_equal",
    "less_equal",
    "not_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "lerp",
    "addcmul",
    "addcdiv",
    "hypot",
    "xlogy",
    "logaddexp",
    "isclose",
    "copysign",
    "heaviside",
)
"""torch's names of the elementwise functions that broadcast several tensors."""
