#!/usr/bin/python3
"""make_format_seeds.py - makes the corpora of fuzz_npy, fuzz_npz and fuzz_load_client anew.

Archives are packed with a fixed date: the files are the same every time."""

import io
import json
import os
import struct
import zipfile

import numpy as np

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
HTTP, GRPC, JSON, PROTOBUF, KEEPS_BODY, TWO_PARTS = 0, 1, 2, 3, 4, 8

ARRAYS = {
    "f32": np.arange(6, dtype="<f4").reshape(2, 3),
    "f64_big": np.arange(4, dtype=">f8"),
    "i64_fortran": np.asfortranarray(np.arange(6, dtype="<i8").reshape(2, 3)),
    "f16": np.ones(3, "<f2"),
    "bool": np.array([True, False]),
    "complex": np.array([1 + 2j], "<c8"),
    "bytes": np.array([b"a", b"", b"bcd"]),
    "text": np.array(["x", "\u00fc\u4e2d", ""]),
    "scalar": np.array(7, "<u2"),
    "empty": np.zeros((0, 3), "<f4"),
}


def write(fuzzer, name, data):
    folder = os.path.join(CORPUS, fuzzer)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def npy(array, version=(1, 0)):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version=version)
    return stream.getvalue()


def archive(members, method, zip64=False):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as z:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            info.compress_type = method
            with z.open(info, "w", force_zip64=zip64) as f:
                f.write(data)
    return stream.getvalue()


def formats():
    for name, array in ARRAYS.items():
        write("fuzz_npy", name, npy(array))
    write("fuzz_npy", "version2", npy(ARRAYS["f32"], (2, 0)))
    write("fuzz_npy", "version3", npy(ARRAYS["text"], (3, 0)))
    write("fuzz_npy", "cut", npy(ARRAYS["f32"])[:-3])
    members = {"x.npy": npy(ARRAYS["f32"]), "names.npy": npy(ARRAYS["text"])}
    stored = archive(members, zipfile.ZIP_STORED)
    write("fuzz_npz", "stored", stored)
    write("fuzz_npz", "deflated", archive(members, zipfile.ZIP_DEFLATED))
    write("fuzz_npz", "zip64", archive(members, zipfile.ZIP_STORED, True))
    write("fuzz_npz", "folder", archive({"a/": b"", **members}, zipfile.ZIP_STORED))
    write("fuzz_npz", "nothing", archive({}, zipfile.ZIP_STORED))
    write("fuzz_npz", "cut", stored[:-9])


def http(status, body, length=None):
    length = len(body) if length is None else length
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, length) + body


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def load_client():
    model = {"name": "m", "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]},
                                     {"name": "s", "datatype": "BYTES", "shape": [1], "optional": True},
                                     {"name": "h", "datatype": "FP16", "shape": [2, 2]}], "outputs": []}
    text = json.dumps(model).encode()

    def case(name, how, data):
        write("fuzz_load_client", name, bytes([how]) + data)

    case("http_good", HTTP | KEEPS_BODY, http(b"200 OK", text))
    case("http_parts", HTTP | KEEPS_BODY | TWO_PARTS, http(b"200 OK", text))
    case("http_error", HTTP, http(b"404 Not Found", b'{"error":"no such model"}'))
    case("http_cut", HTTP, http(b"200 OK", b"{}", 99))
    case("http_long", HTTP, http(b"200 OK", b"{}", 1 << 63))
    case("http_no_length", HTTP, b"HTTP/1.1 200 OK\r\n\r\n")
    case("http_long_head", HTTP | TWO_PARTS, b"HTTP/1.1 200 OK\r\nX: " + b"a" * 17000)
    settings = frame(4, 0, 0, b"") + frame(4, 1, 0, b"")
    # :status 200, content-type; then grpc-status 0 or 5 as literals
    head = frame(1, 4, 1, b"\x88")
    literal = lambda key, value: b"\x00" + bytes([len(key)]) + key + bytes([len(value)]) + value
    good = frame(1, 5, 1, literal(b"grpc-status", b"0"))
    bad = frame(1, 5, 1, literal(b"grpc-status", b"5") + literal(b"grpc-message", b"no model"))
    body = frame(0, 0, 1, b"\0\0\0\0\0")
    case("grpc_good", GRPC | KEEPS_BODY, settings + head + body + good)
    case("grpc_parts", GRPC | KEEPS_BODY | TWO_PARTS, settings + head + body + good)
    case("grpc_error", GRPC, settings + head + bad)
    case("grpc_reset", GRPC, settings + frame(3, 0, 1, b"\0\0\0\2"))
    case("grpc_goaway", GRPC, settings + frame(7, 0, 0, b"\0\0\0\0\0\0\0\1"))
    case("grpc_http1", GRPC, http(b"400 Bad Request", b""))
    case("json", JSON, text)
    case("json_deep", JSON, b'{"inputs":[{"shape":[[[1]]]}]}')
    case("json_large", JSON, b'{"inputs":[{"name":"y","datatype":"FP64","shape":[99999999,99999999]}]}')
    tensor = field(1, b"x") + field(2, b"FP32") + field(3, b"\x01\x02")
    other = field(1, b"y") + field(2, b"INT64") + field(3, b"\x03")
    case("protobuf", PROTOBUF, field(1, b"m") + field(4, tensor) + field(4, other))
    case("protobuf_cut", PROTOBUF, field(4, tensor)[:-2])


if __name__ == "__main__":
    formats()
    load_client()
