#!/usr/bin/python3
"""compiled.py [MODEL] - a compiled model beside ONNX Runtime and the .onnx file: how soon the first answer is there.

Every engine starts anew, in turns, after a pause in which the system clears away what the last one left. The figures
are session creation and first run together, least and median. A start whose threads waited for a CPU for more than a
twentieth of its time is left out and counted; the median of all starts stands beside. Then two processes map the
compiled file, and smaps tells how much of it they share.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

PAUSE = 0.3  # seconds
HERE = os.path.dirname(os.path.abspath(__file__))


def waited(pid):
    """How long the threads of a process have stood in line for a CPU so far, in ms."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as f:
            total += int(f.read().split()[1])
    return total / 1e6


def start(settings, library, folder):
    """A worker that has answered once: the process, session creation and first run in ms, and whether it was
    left alone."""
    command = [os.path.join(settings.build, "versus_worker"), library, str(settings.threads), folder,
               settings.data_set]
    time.sleep(PAUSE)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    words = process.stdout.readline().split()
    if len(words) < 4:
        sys.exit("%s: no answer" % " ".join(command))
    ms = float(words[2]) + float(words[3])
    return process, ms, waited(process.pid) <= ms / 20


def stop(process):
    process.stdin.close()
    process.wait()


def shared(pid, path):
    """Of a mapped file: kB that are resident, shared with another process, and private."""
    kb, here = {}, False
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            words = line.split()
            if not words[0].endswith(":"):
                here = words[-1] == path
            elif here and words[0].partition("_")[0].rstrip(":") in ("Rss", "Shared", "Private"):
                kind = words[0].partition("_")[0].rstrip(":")  # pages not yet on the disk count as dirty
                kb[kind] = kb.get(kind, 0) + int(words[1])
    return tuple(kb.get(kind, 0) for kind in ("Rss", "Shared", "Private"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="resnet50", help="of the zoo")
    parser.add_argument("--zoo", default=os.path.join(HERE, "..", "build/zoo/full-17"))
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--lib", default="", help="the other library; none: Sinter alone")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data-set", default="0")
    settings = parser.parse_args()
    settings.threads = settings.threads or len(os.sched_getaffinity(0))
    original = os.path.join(settings.zoo, settings.model)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")  # workers look for this name; the contents tell
        subprocess.run([os.path.join(settings.build, "sinter"), "compile", os.path.join(original, "model.onnx"), "-o",
                        path], check=True)
        data = "test_data_set_" + settings.data_set
        os.symlink(os.path.join(original, data), os.path.join(folder, data))
        engines = [("compiled", "sinter", folder), ("sinter", "sinter", original)]
        if settings.lib:
            engines.append(("onnxruntime", settings.lib, original))
        took = {name: [] for name, _, _ in engines}
        every = {name: [] for name, _, _ in engines}
        while min(map(len, took.values())) < settings.rounds and len(every["compiled"]) < 10 * settings.rounds:
            for name, library, where in engines:
                process, ms, alone = start(settings, library, where)
                stop(process)
                every[name].append(ms)
                if alone:
                    took[name].append(ms)
        for name, times in took.items():
            if not times:
                print("%s was never left alone: all of its starts count" % name)
                times += every[name]
            print("%-12s %7.1f ms at least, %7.1f in the median of %d starts (of all %d: %.1f)"
                  % (name, min(times), statistics.median(times), len(times), len(every[name]),
                     statistics.median(every[name])))
        if settings.lib:
            other = took["onnxruntime"]
            print("compiled is there %.1f times sooner (median %.1f)"
                  % (min(other) / min(took["compiled"]),
                     statistics.median(other) / statistics.median(took["compiled"])))
        pair = [start(settings, "sinter", folder)[0] for _ in range(2)]
        for process in pair:
            print("process %d: %d kB of the file resident, %d shared, %d private" % ((process.pid,) + shared(process.pid, path)))
        rss, both, private = shared(pair[0].pid, path)
        for process in pair:
            stop(process)
        return 0 if rss and both >= 0.95 * rss and private <= 0.05 * rss else 1


if __name__ == "__main__":
    sys.exit(main())
