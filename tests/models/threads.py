#!/usr/bin/python3
"""threads.py PROGRAM FOLDER... - every model below the folders gives the same bits with 1, 2 and 3 threads.

A model is a folder with model.onnx and test_data_set_N/input_N.pb. SINTER_ISA chooses the tier. Models
whose results are random by design, which their operators tell, are named and left out."""

import json
import pathlib
import subprocess
import sys
import tempfile


RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def outputs(program, model, inputs, threads):
    """The bytes of each output file of one run; None and the message when it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "run", str(model), "--threads", str(threads), "--output", folder, "--format", "pb"]
        for name, path in inputs:
            command += ["--input", f"{name}={path}"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            return None, done.stderr.strip().splitlines()[-1:]
        return {p.name: p.read_bytes() for p in sorted(pathlib.Path(folder).iterdir())}, None


def facts_of(program, model):
    return json.loads(subprocess.run([program, "inspect", "--json", str(model)], capture_output=True, check=True).stdout)


def named_inputs(facts, case):
    """(name, file) of each input of a data set: files are numbered as the model lists its inputs."""
    return [(port["name"], path) for i, port in enumerate(facts["inputs"])
            if (path := case / f"input_{i}.pb").exists()]


def check(program, case):
    """'' when a data set of a model holds, else what does not."""
    model = case.parent / "model.onnx"
    facts = facts_of(program, model)
    if chance := RANDOM & {op["name"] for op in facts["operators"]}:
        return f"skipped: its results are random ({', '.join(sorted(chance))})"
    inputs = named_inputs(facts, case)
    one, message = outputs(program, model, inputs, 1)
    if one is None:
        return f"cannot be run: {message}"
    for threads in (2, 3):
        more, message = outputs(program, model, inputs, threads)
        if more == one:
            continue
        names = [name for name in one if more is None or more.get(name) != one[name]]
        return f"{threads} threads: {', '.join(names)} differ" + (f": {message}" if message else "")
    return ""


def main():
    program, folders = sys.argv[1], sys.argv[2:]
    cases = sorted(p for f in folders for p in pathlib.Path(f).rglob("test_data_set_*")
                   if (p.parent / "model.onnx").exists() and any(p.glob("input_*.pb")))
    if not cases:
        print("no models below", *folders)
        return 77
    bad = skipped = 0
    for case in cases:
        text = check(program, case)
        if text:
            print(f"{case.parent.name}/{case.name}: {text}")
            skipped += text.startswith("skipped")
            bad += not text.startswith("skipped")
    print(f"{len(cases) - bad - skipped} passed, {bad} failed, {skipped} skipped")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
