"""Builds the native engine's kernels. Where there is no compiler the installation goes on, and torch does the work."""

import os
import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/cutaway/runtime/native/kernels")
FLAGS = ["-std=c++20", "-O3", "-ffp-contract=off", "-Wno-psabi", "-Wno-maybe-uninitialized", "-pthread"]
SANITIZE = os.environ.get("CUTAWAY_SANITIZE")  # "address" or "thread": for the slow tests
if SANITIZE:
    FLAGS += [f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer", "-g"]


class BuildKernels(build_ext):
    """The kernels are wanted, not needed."""

    said = False

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            self.say(error)

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:
            self.say(error)

    def say(self, error: Exception) -> None:
        if self.said:
            return
        self.said = True
        print(
            f"cutaway: the native engine was not built ({error}). Everything works without it, more slowly. "
            "With a C++ compiler (g++ 11 or newer, or clang++), install again to have it.",
            file=sys.stderr,
        )


kernels = Extension(
    "cutaway.runtime.native._kernels",  # not a Python module: ctypes calls it
    sources=[str(path) for path in sorted(NATIVE.glob("*.cpp"))],
    depends=[str(path) for path in sorted([*NATIVE.glob("*.h"), *NATIVE.glob("*.inc")])],
    extra_compile_args=FLAGS,
    extra_link_args=["-pthread", *([f"-fsanitize={SANITIZE}"] if SANITIZE else [])],
    language="c++",
    optional=True,
)
setup(
    ext_modules=[] if platform.system() == "Windows" else [kernels],
    cmdclass={"build_ext": BuildKernels},
)
