"""Whole commands, from the start of a process to its first token: how long it takes, and how much memory."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from cutaway.bench import llama
from cutaway.bench.run import NativeRunner, Report, Runner, median
from cutaway.runtime.native.packed_file import write_packed
from cutaway.text.tokenizer import Tokenizer

PROMPT = "Once upon a time"


def measure_first_tokens(report: Report, runners: list[Runner], folder: Path, rounds: int) -> Report:
    """With the first tokens of our int8 and llama.cpp's q8_0, in turns. Of several rounds the first warms up."""
    commands: dict[int, tuple[list[str], int]] = {}
    for number, runner in enumerate(runners):
        if isinstance(runner, NativeRunner) and runner.weights == "int8" and runner.runs.config.vocabulary == 50_257:
            file = folder / "int8.cutaway"
            write_packed(runner.runs.packed, Tokenizer.load("gpt2"), file)
            asked = ["generate", "--model", str(file), "--greedy", "--max-tokens", "1", PROMPT]
            commands[number] = ([sys.executable, "-m", "cutaway", *asked], runner.runs.packed.nbytes)
        elif isinstance(runner, llama.Compiled | llama.Wheel) and runner.weights == "q8_0":
            commands[number] = ([sys.executable, "-c", *runner.command()], runner.path.stat().st_size)
    seconds: dict[int, list[float]] = {number: [] for number in commands}
    memory = dict.fromkeys(commands, 0)
    for count in range(rounds):
        for number, (command, _) in commands.items():
            took, held = run_command(command)
            memory[number] = max(memory[number], held)
            if count or rounds == 1:
                seconds[number].append(took)
    rows = list(report.rows)
    for number, (_, size) in commands.items():
        rows[number] = replace(rows[number], first=median(seconds[number]), memory=memory[number] / size)
    return replace(report, rows=rows)


LAUNCH = """
import os, subprocess, sys, time
begun = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
usage = os.wait4(process.pid, 0)[2]
print(time.perf_counter() - begun, usage.ru_maxrss * 1024)
"""
"""A small process to start from: Linux counts the memory of whoever forks as the child's."""


def run_command(command: list[str]) -> tuple[float, int]:
    """Seconds until the process is over, and the most bytes it held."""
    told = subprocess.run([sys.executable, "-c", LAUNCH, *command], capture_output=True, text=True, check=True).stdout
    seconds, held = told.split()
    return float(seconds), int(held)
