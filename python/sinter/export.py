"""python3 -m sinter.export MODULE:FACTORY [--input SHAPE]... -o MODEL.onnx

Exports a torch.nn.Module, checks that PyTorch and Sinter agree on it, and says how much quicker it
runs. FACTORY is a name in MODULE: a module, or a function or class that makes one when called
without arguments. It may also return (module, inputs)."""

import argparse
import importlib
import inspect
import re
import sys
import time

import numpy as np

SHAPE_HELP = """shape of one input, such as 1x3x224x224, in the order of forward()'s arguments.
A dimension may be named, as in batch=1x3xheight=224xwidth=224: it may then have any size at run
time. A type may follow, as in 1x16:int64 (values below 100). Without names the first dimension of
every input is called batch, unless --static is given."""


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python3 -m sinter.export", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factory", metavar="MODULE:FACTORY")
    parser.add_argument("-i", "--input", action="append", default=[], metavar="SHAPE",
                        help=SHAPE_HELP)
    parser.add_argument("-o", "--output", default="model.onnx", metavar="FILE")
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--static", action="store_true", help="fix every dimension")
    parser.add_argument("--tolerance", type=float, default=1e-4,
                        help="largest difference allowed, of the output's scale")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long to time each engine")
    parser.add_argument("--threads", type=int, default=0, help="0: all")
    options = parser.parse_args(argv)
    sys.path.insert(0, "")
    try:
        return _export(options)
    except Problem as e:
        print(f"sinter.export: {e}", file=sys.stderr)
        return 1


class Problem(Exception):
    """What went wrong, with what to do about it."""


def _export(options):
    import torch

    torch.manual_seed(0)
    if options.threads:
        torch.set_num_threads(options.threads)
    module, inputs, axes = _load(options, torch)
    module.eval()
    with torch.no_grad():
        expected = _flat(module(*inputs))
    names = _argument_names(module, len(inputs))
    outputs = [f"output_{i}" if len(expected) > 1 else "output" for i in range(len(expected))]
    dynamic = _dynamic_axes(names, axes, inputs, options.static)
    _write(torch, module, inputs, options, names, outputs, dynamic)
    print(f"wrote {options.output} (opset {options.opset})")
    for name, x in zip(names, inputs):
        dims = [dynamic.get(name, {}).get(i, d) for i, d in enumerate(x.shape)]
        print(f"  input {name}: {str(x.dtype).replace('torch.', '')} {dims}")
    return _compare(torch, module, inputs, names, outputs, expected, options)


def _load(options, torch):
    """The module, its sample inputs, and the names of their dimensions ({} where none)."""
    path, _, name = options.factory.partition(":")
    if not name:
        raise Problem(f"{options.factory!r} is not MODULE:FACTORY, such as torchvision.models:resnet18")
    try:
        made = getattr(importlib.import_module(path), name)
    except (ImportError, AttributeError) as e:
        raise Problem(f"cannot load {options.factory}: {e}") from e
    if not isinstance(made, torch.nn.Module):
        made = made()
    module, inputs = made if isinstance(made, tuple) else (made, None)
    if not isinstance(module, torch.nn.Module):
        raise Problem(f"{options.factory} gives a {type(module).__name__}, not a torch.nn.Module")
    if options.input:
        parsed = [_parse_input(text, torch) for text in options.input]
        return module, [x for x, _ in parsed], [names for _, names in parsed]
    if inputs is None:
        raise Problem("give the shape of every input with --input, such as --input 1x3x224x224")
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    return module, inputs, [{} for _ in inputs]


def _parse_input(text, torch):
    shape, _, dtype = text.partition(":")
    dims, names = [], {}
    for i, part in enumerate(shape.split("x") if shape else []):
        match = re.fullmatch(r"(?:([A-Za-z_]\w*)=)?(\d+)", part)
        if not match:
            raise Problem(f"{text!r} is not a shape: {part!r} is neither SIZE nor NAME=SIZE "
                          "(dimensions are separated by x)")
        if match.group(1):
            names[i] = match.group(1)
        dims.append(int(match.group(2)))
    kind = getattr(torch, dtype or "float32", None)
    if not isinstance(kind, torch.dtype):
        raise Problem(f"{dtype!r} is not a type of PyTorch")
    if kind.is_floating_point:
        return torch.randn(dims).to(kind), names
    return torch.randint(0, 2 if kind == torch.bool else 100, dims).to(kind), names


def _argument_names(module, count):
    names = [p.name for p in inspect.signature(module.forward).parameters.values()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    return names + [f"input_{i}" for i in range(len(names), count)]


def _dynamic_axes(names, axes, inputs, static):
    if static:
        return {}
    if any(axes):
        return {n: a for n, a in zip(names, axes) if a}
    return {n: {0: "batch"} for n, x in zip(names, inputs) if x.dim() > 0}


def _flat(result):
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (list, tuple)):
        return [t for r in result for t in _flat(r)]
    return [] if result is None else [result]


def _write(torch, module, inputs, options, names, outputs, dynamic):
    axes = dict(dynamic)
    if dynamic:
        first = set(sum((list(a.values()) for a in dynamic.values()), []))
        if first == {"batch"}:
            axes.update({o: {0: "batch"} for o in outputs})
    try:
        torch.onnx.export(module, tuple(inputs), options.output, opset_version=options.opset,
                          input_names=names, output_names=outputs, dynamic_axes=axes or None,
                          do_constant_folding=True)
    except Exception as e:  # torch raises many kinds; each is explained
        raise Problem(_explain(str(e), options)) from e


def _explain(text, options):
    """What to do about a failed export."""
    first = text.strip().splitlines()[0] if text.strip() else "no reason given"
    match = re.search(r"operator ['\"]?([\w:.]+)['\"]?", text)
    lines = [f"torch.onnx.export refused the model: {first}"]
    if match and ("not supported" in text or "not exportable" in text.lower()
                  or "unsupported" in text.lower()):
        op = match.group(1)
        lines += [
            f"  {op} has no ONNX form at opset {options.opset}. What can be done:",
            "  - try a later opset (--opset N), if this PyTorch writes one: more operators exist there;",
            f"  - write what {op} does with operators that export, or replace the layer for export;",
            f"  - map it to an operator of your own: torch.onnx.register_custom_op_symbolic('{op}',"
            " ...), and give Sinter a kernel for it (docs/CUSTOM_OPERATORS.md)."
        ]
    elif "dynamic" in text or "control flow" in text or "bool" in text:
        lines.append("  Python decided something from a tensor's value while tracing: script that "
                     "part with torch.jit.script, or take the decision out of forward().")
    return "\n".join(lines)


def _compare(torch, module, inputs, names, outputs, expected, options):
    import sinter

    try:
        session = sinter.Session(options.output, threads=options.threads)
    except sinter.Error as e:
        raise Problem(f"Sinter does not take the exported model: {e}") from e
    feeds = {n: x.numpy() for n, x in zip(names, inputs) if n in {i.name for i in session.inputs}}
    left_out = [n for n in names if n not in feeds]
    if left_out:
        print(f"  not used by the exported graph, and dropped: {', '.join(left_out)}")
    results = session.run(feeds)
    worst = 0.0
    for name, want in zip(outputs, expected):
        want, got = want.detach().numpy(), results[name]
        if want.shape != got.shape:
            raise Problem(f"{name}: PyTorch gives shape {want.shape}, Sinter {got.shape}")
        if want.size:
            scale = max(float(np.max(np.abs(want.astype(np.float64)))), 1e-30)
            difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
            worst = max(worst, float(np.max(difference)) / scale)
    agrees = worst <= options.tolerance
    print(f"largest difference from PyTorch: {worst:.1e} of the output's scale"
          f" ({'fine' if agrees else f'more than {options.tolerance:g}'})")
    with torch.no_grad():
        theirs = _time(lambda: module(*inputs), options.seconds)
    ours = _time(lambda: session.run(feeds), options.seconds)
    print(f"PyTorch {theirs * 1e3:.3f} ms, Sinter {ours * 1e3:.3f} ms: {theirs / ours:.1f} times as fast")
    return 0 if agrees else 1


def _time(run, seconds):
    """The best time of many runs."""
    best, end = float("inf"), time.perf_counter() + seconds
    run()
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


if __name__ == "__main__":
    sys.exit(main())
