/* onnx_fields.h - the field numbers of ONNX's protobuf messages, all of them in one place. */
#ifndef SNI_MODEL_ONNX_FIELDS_H
#define SNI_MODEL_ONNX_FIELDS_H

enum { /* ModelProto */
       ONNX_MODEL_IR_VERSION = 1,
       ONNX_MODEL_PRODUCER_NAME = 2,
       ONNX_MODEL_PRODUCER_VERSION = 3,
       ONNX_MODEL_DOMAIN = 4,
       ONNX_MODEL_VERSION = 5,
       ONNX_MODEL_DOC = 6,
       ONNX_MODEL_GRAPH = 7,
       ONNX_MODEL_OPSET = 8,
       ONNX_MODEL_METADATA = 14,
       ONNX_MODEL_TRAINING = 20,
       ONNX_MODEL_FUNCTION = 25,
       ONNX_MODEL_CONFIGURATION = 26
};

enum { /* OperatorSetIdProto */
       ONNX_OPSET_DOMAIN = 1,
       ONNX_OPSET_VERSION = 2
};

enum { /* StringStringEntryProto */
       ONNX_ENTRY_KEY = 1,
       ONNX_ENTRY_VALUE = 2
};

enum { /* GraphProto */
       ONNX_GRAPH_NODE = 1,
       ONNX_GRAPH_NAME = 2,
       ONNX_GRAPH_INITIALIZER = 5,
       ONNX_GRAPH_DOC = 10,
       ONNX_GRAPH_INPUT = 11,
       ONNX_GRAPH_OUTPUT = 12,
       ONNX_GRAPH_VALUE_INFO = 13,
       ONNX_GRAPH_QUANTIZATION = 14,
       ONNX_GRAPH_SPARSE_INITIALIZER = 15,
       ONNX_GRAPH_METADATA = 16
};

enum { /* NodeProto */
       ONNX_NODE_INPUT = 1,
       ONNX_NODE_OUTPUT = 2,
       ONNX_NODE_NAME = 3,
       ONNX_NODE_OP_TYPE = 4,
       ONNX_NODE_ATTRIBUTE = 5,
       ONNX_NODE_DOC = 6,
       ONNX_NODE_DOMAIN = 7,
       ONNX_NODE_OVERLOAD = 8,
       ONNX_NODE_METADATA = 9,
       ONNX_NODE_DEVICE = 10
};

enum { /* AttributeProto */
       ONNX_ATTR_NAME = 1,
       ONNX_ATTR_F = 2,
       ONNX_ATTR_I = 3,
       ONNX_ATTR_S = 4,
       ONNX_ATTR_T = 5,
       ONNX_ATTR_G = 6,
       ONNX_ATTR_FLOATS = 7,
       ONNX_ATTR_INTS = 8,
       ONNX_ATTR_STRINGS = 9,
       ONNX_ATTR_TENSORS = 10,
       ONNX_ATTR_GRAPHS = 11,
       ONNX_ATTR_DOC = 13,
       ONNX_ATTR_TP = 14,
       ONNX_ATTR_TYPE_PROTOS = 15,
       ONNX_ATTR_TYPE = 20,
       ONNX_ATTR_REF = 21,
       ONNX_ATTR_SPARSE = 22,
       ONNX_ATTR_SPARSES = 23
};

enum { /* AttributeProto.AttributeType */
       ONNX_ATTR_TYPE_UNDEFINED = 0,
       ONNX_ATTR_TYPE_FLOAT = 1,
       ONNX_ATTR_TYPE_INT = 2,
       ONNX_ATTR_TYPE_STRING = 3,
       ONNX_ATTR_TYPE_TENSOR = 4,
       ONNX_ATTR_TYPE_GRAPH = 5,
       ONNX_ATTR_TYPE_FLOATS = 6,
       ONNX_ATTR_TYPE_INTS = 7,
       ONNX_ATTR_TYPE_STRINGS = 8,
       ONNX_ATTR_TYPE_TENSORS = 9,
       ONNX_ATTR_TYPE_GRAPHS = 10,
       ONNX_ATTR_TYPE_SPARSE_TENSOR = 11,
       ONNX_ATTR_TYPE_SPARSE_TENSORS = 12,
       ONNX_ATTR_TYPE_TYPE_PROTO = 13,
       ONNX_ATTR_TYPE_TYPE_PROTOS = 14
};

enum { /* TensorProto; its data_type numbers are those of sn_dtype */
       ONNX_TENSOR_DIMS = 1,
       ONNX_TENSOR_DATA_TYPE = 2,
       ONNX_TENSOR_SEGMENT = 3,
       ONNX_TENSOR_FLOAT_DATA = 4,
       ONNX_TENSOR_INT32_DATA = 5,
       ONNX_TENSOR_STRING_DATA = 6,
       ONNX_TENSOR_INT64_DATA = 7,
       ONNX_TENSOR_NAME = 8,
       ONNX_TENSOR_RAW_DATA = 9,
       ONNX_TENSOR_DOUBLE_DATA = 10,
       ONNX_TENSOR_UINT64_DATA = 11,
       ONNX_TENSOR_DOC = 12,
       ONNX_TENSOR_EXTERNAL = 13,
       ONNX_TENSOR_LOCATION = 14, /* 0 default, 1 external */
       ONNX_TENSOR_METADATA = 16
};

enum { /* SparseTensorProto */
       ONNX_SPARSE_VALUES = 1,
       ONNX_SPARSE_INDICES = 2,
       ONNX_SPARSE_DIMS = 3
};

enum { /* ValueInfoProto */
       ONNX_INFO_NAME = 1,
       ONNX_INFO_TYPE = 2,
       ONNX_INFO_DOC = 3,
       ONNX_INFO_METADATA = 4
};

enum { /* TypeProto */
       ONNX_TYPE_PROTO_TENSOR = 1,
       ONNX_TYPE_PROTO_SEQUENCE = 4,
       ONNX_TYPE_PROTO_MAP = 5,
       ONNX_TYPE_PROTO_DENOTATION = 6,
       ONNX_TYPE_PROTO_OPAQUE = 7,
       ONNX_TYPE_PROTO_SPARSE = 8,
       ONNX_TYPE_PROTO_OPTIONAL = 9
};

enum { /* TypeProto.Tensor and .SparseTensor */
       ONNX_TENSOR_TYPE_ELEM = 1,
       ONNX_TENSOR_TYPE_SHAPE = 2
};

enum { /* TypeProto.Sequence and .Optional */
       ONNX_SEQUENCE_TYPE_ELEM = 1
};

enum { /* TypeProto.Map */
       ONNX_MAP_TYPE_KEY = 1,
       ONNX_MAP_TYPE_VALUE = 2
};

enum { /* TensorShapeProto */
       ONNX_SHAPE_DIM = 1
};

enum { /* TensorShapeProto.Dimension */
       ONNX_DIM_VALUE = 1,
       ONNX_DIM_PARAM = 2,
       ONNX_DIM_DENOTATION = 3
};

enum { /* FunctionProto */
       ONNX_FUNCTION_NAME = 1,
       ONNX_FUNCTION_INPUT = 4,
       ONNX_FUNCTION_OUTPUT = 5,
       ONNX_FUNCTION_ATTRIBUTE = 6,
       ONNX_FUNCTION_NODE = 7,
       ONNX_FUNCTION_DOC = 8,
       ONNX_FUNCTION_OPSET = 9,
       ONNX_FUNCTION_DOMAIN = 10,
       ONNX_FUNCTION_ATTRIBUTE_PROTO = 11,
       ONNX_FUNCTION_VALUE_INFO = 12,
       ONNX_FUNCTION_OVERLOAD = 13,
       ONNX_FUNCTION_METADATA = 14
};

enum { /* SequenceProto (repeated values) and OptionalProto (one value): the same numbers */
       ONNX_SEQUENCE_NAME = 1,
       ONNX_SEQUENCE_ELEM_TYPE = 2,
       ONNX_SEQUENCE_TENSOR = 3,
       ONNX_SEQUENCE_SPARSE = 4,
       ONNX_SEQUENCE_SEQUENCE = 5,
       ONNX_SEQUENCE_MAP = 6,
       ONNX_SEQUENCE_OPTIONAL = 7
};

enum { /* SequenceProto.DataType and OptionalProto.DataType */
       ONNX_ELEM_UNDEFINED = 0,
       ONNX_ELEM_TENSOR = 1,
       ONNX_ELEM_SPARSE_TENSOR = 2,
       ONNX_ELEM_SEQUENCE = 3,
       ONNX_ELEM_MAP = 4,
       ONNX_ELEM_OPTIONAL = 5
};

enum { /* MapProto */
       ONNX_MAP_NAME = 1,
       ONNX_MAP_KEY_TYPE = 2,
       ONNX_MAP_KEYS = 3,
       ONNX_MAP_STRING_KEYS = 4,
       ONNX_MAP_VALUES = 5 /* SequenceProto */
};

#endif
