#!/bin/bash
# run.sh PROGRAM [SECONDS] - three servers in network namespaces of their own behind HAProxy; one after the
# other is killed under load and started again. Prints what a client that retries has seen; exits with 1
# if any of its requests failed for good. Needs root, ip and haproxy (Debian: iproute2 haproxy).
set -e
program=$(realpath "${1:?usage: run.sh PROGRAM [SECONDS]}")
seconds=${2:-20}
here=$(cd "$(dirname "$0")" && pwd)
models=$here/../../demo/digits.onnx
work=$(mktemp -d)
pids=()

clean() {
    for pid in "${pids[@]}" "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    for i in 1 2 3; do ip netns del "sinter$i" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean EXIT

servers=()
start() { # starts server $1 in its namespace
    ip netns exec "sinter$1" "$program" serve "$models" --host "10.77.$1.2" --metrics off --quiet \
        >>"$work/$1.log" 2>&1 &
    servers[$1]=$!
}

for i in 1 2 3; do
    ip netns add "sinter$i"
    ip link add "sinter-v$i" type veth peer name eth0 netns "sinter$i"
    ip addr add "10.77.$i.1/24" dev "sinter-v$i"
    ip link set "sinter-v$i" up
    ip -n "sinter$i" addr add "10.77.$i.2/24" dev eth0
    ip -n "sinter$i" link set eth0 up
    ip -n "sinter$i" link set lo up
    start "$i"
done
sleep 1
haproxy -f "$here/haproxy.cfg" -db >"$work/haproxy.log" 2>&1 &
pids+=($!)
sleep 1
/usr/bin/python3 "$here/client.py" 10.77.1.1 8000 "$seconds" &
client=$!
i=1
while kill -0 "$client" 2>/dev/null; do
    sleep 1.5
    kill -9 "${servers[$i]}" 2>/dev/null || true
    wait "${servers[$i]}" 2>/dev/null || true
    sleep 1
    start "$i"
    sleep 1
    i=$((i % 3 + 1))
done
wait "$client"
