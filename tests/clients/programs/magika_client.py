"""magika_client.py real|ours - file types by Magika, with the package onnxruntime or with sinter in its place."""
import json
import sys

if sys.argv[1] == "ours":
    import sinter
    sys.modules["onnxruntime"] = sinter
import magika

FILES = [b"#include <stdio.h>\nint main(void) { return 0; }\n", b"def f(x):\n    return x + 1\n\nclass A:\n    pass\n",
         b'{"a": [1, 2], "b": {"c": null}}\n', b"<html><body><p>hello</p></body></html>\n",
         b"select a, b from t where a > 3 order by b;\n", bytes(range(256)) * 4]
known = magika.Magika()
results = [known.identify_bytes(f) for f in FILES]
print(json.dumps([[r.output.label, r.score] for r in results]))
