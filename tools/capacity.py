#!/usr/bin/python3
"""capacity.py - how many machines a load needs, from what one machine was measured to do.

    --load         requests a second that must be served, at the busiest time
    --throughput   requests a second that one machine served when driven as hard as it goes
    --run-ms       time of one request on an idle machine
    --concurrency  runs that one machine does at once (CPUs / threads of a run)
    --target-ms    time that 99 of 100 requests must stay below
    --spare        machines that may be gone (default: 1)

Waiting is estimated by the queue with `concurrency` servers, random arrivals and runs of one length
(half of what random lengths would give). Real arrivals come in bursts: leave some room.
"""

import argparse
import math
import sys


def waiting_share(servers, load):
    """Erlang's C: the share of requests that wait, for `load` in units of one server."""
    if load >= servers:
        return 1.0
    term, total = 1.0, 1.0
    for k in range(1, servers):
        term *= load / k
        total += term
    last = term * load / servers * servers / (servers - load)
    return last / (total + last)


def latency_ms(servers, throughput, rate, run_ms, share=0.99):
    """The time below which `share` of the requests of one machine stay, or infinity."""
    load = rate / throughput * servers
    if load >= servers:
        return math.inf
    waits = waiting_share(servers, load)
    service_ms = servers / throughput * 1e3
    mean_if_waiting = service_ms / (servers - load) / 2
    over = max(waits, 1e-12) / (1 - share)
    return run_ms + (mean_if_waiting * math.log(over) if over > 1 else 0.0)


def machines_for(args):
    least = max(1, math.ceil(args.load / args.throughput))
    for count in range(least, least * 20 + 20):
        if latency_ms(args.concurrency, args.throughput, args.load / count, args.run_ms) <= args.target_ms:
            return count
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--load", type=float, required=True)
    parser.add_argument("--throughput", type=float, required=True)
    parser.add_argument("--run-ms", type=float, required=True)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--target-ms", type=float, required=True)
    parser.add_argument("--spare", type=int, default=1)
    args = parser.parse_args()
    if min(args.load, args.throughput, args.run_ms, args.concurrency, args.target_ms) <= 0:
        parser.error("figures must be positive")
    count = machines_for(args)
    if count is None:
        print("no number of machines: a run alone takes %.1f ms of %.1f" % (args.run_ms, args.target_ms))
        return 1
    rate = args.load / count
    print("machines needed    %d" % count)
    print("with %d to spare    %d" % (args.spare, count + args.spare))
    print("each is busy       %.0f %%" % (100 * rate / args.throughput))
    print("99 %% stay below    %.1f ms" % latency_ms(args.concurrency, args.throughput, rate, args.run_ms))
    one_less = args.load / max(1, count + args.spare - 1)
    print("with one gone      %.1f ms" % latency_ms(args.concurrency, args.throughput, one_less, args.run_ms))
    return 0


if __name__ == "__main__":
    sys.exit(main())
