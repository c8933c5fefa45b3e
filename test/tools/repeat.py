#!/usr/bin/env python3
"""Runs a command several times, each in a process of its own, and compares what it prints.

  repeat.py TIMES KEY COMMAND...

The command prints one JSON object; KEY of it must be the same, to the last digit, every time.
"""
import json
import subprocess
import sys


def main():
    times, key, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    first = None
    for turn in range(times):
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            sys.exit(f"{command[0]} failed:\n{result.stderr}")
        value = json.dumps(json.loads(result.stdout)[key])
        if first is None:
            first = value
        if value != first:
            sys.exit(f"'{key}' of run {turn + 1} differs: expects {first[:200]}, but got {value[:200]}")
    print(f"{times} runs, '{key}' equal every time")


main()
