"""A wheel holds, beside the sources, recipes and machine code of the kernels: no first search waits for a compiler."""

import os
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py


class BuildWithKernels(build_py):
    """Compiles the kernels of what is built; where that fails, the first use of each compiles it."""

    def run(self) -> None:
        """Build."""
        super().run()
        if not self.editable_mode:
            left_out = shutil.ignore_patterns("logs", "__pycache__")
            for folder in ("recipes", "examples"):
                target = os.path.join(self.build_lib, "keima", "shipped", folder)
                shutil.copytree(folder, target, ignore=left_out, dirs_exist_ok=True)
        root = os.path.abspath("." if self.editable_mode else self.build_lib)
        subprocess.run([sys.executable, "-m", "keima.precompile"], cwd=root, check=False)


class Compiled(Distribution):
    """Machine code is for one kind of machine and one version of Python."""

    def has_ext_modules(self) -> bool:
        """True: so the wheel's name says."""
        return True


setup(cmdclass={"build_py": BuildWithKernels}, distclass=Compiled)
