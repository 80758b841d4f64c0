"""The package as its users install it: built as a wheel, and installed where nothing else is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile
from pathlib import Path

import fastjsonschema

SDK = Path(__file__).resolve().parent.parent

USED = '''
import json
from importlib import metadata

import innkeeper

print(json.dumps({
    "file": innkeeper.__file__,
    "version": metadata.version("innkeeper-guest"),
    "requires": metadata.requires("innkeeper-guest"),
}))
'''

GUEST = '''
from dataclasses import dataclass

from innkeeper import Context, Describe, Guest, Kind, Observed, Outcome, complete, testing

@dataclass
class Spec:
    text: str

@dataclass
class Greeting:
    spec: Spec

GREETING = Kind("example.com/v1", "Greeting", "greetings", Greeting)
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")

class Greeter(Guest[Greeting, None]):
    manifest = Describe.reconciler_of(GREETING, "greeter", "1.0.0").owns(CONFIG_MAP).manifest()

    def reconcile(self, context: Context, observed: Observed[Greeting, None]) -> Outcome:
        text = observed.primary.spec.text
        return complete().add(CONFIG_MAP.object(observed.name, data={"text": text}))

result = testing.run(Greeter, object={"metadata": {"name": "a"}, "spec": {"text": "Good day"}})
print(result.complete().object(CONFIG_MAP, "a")["data"]["text"])
'''


def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a program where it finds no sources of the SDK."""
    with tempfile.TemporaryDirectory() as elsewhere:
        return subprocess.run(command, capture_output=True, text=True, cwd=elsewhere, check=False)


class Package(unittest.TestCase):
    folder: Path
    wheel: Path
    python: Path
    """The Python of an environment that has the package and nothing else."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        sources = cls.folder / "sources"
        sources.mkdir()
        for name in ["pyproject.toml", "README.md"]:
            shutil.copy(SDK / name, sources)
        shutil.copytree(SDK / "src", sources / "src", ignore=shutil.ignore_patterns("__pycache__"))
        # Nothing from a registry: this Python has what builds the package, or pip names it.
        cls.pip(
            sys.executable, "wheel", "--no-deps", "--no-build-isolation",
            "--check-build-dependencies", "--wheel-dir", cls.folder, sources,
        )
        [cls.wheel] = cls.folder.glob("*.whl")
        environment = cls.folder / "environment"
        venv.create(environment, with_pip=True)
        cls.python = environment / "bin/python"
        cls.pip(cls.python, "install", "--no-deps", cls.wheel)

    @classmethod
    def pip(cls, python: str | Path, command: str, *arguments: str | Path) -> None:
        done = call(python, "-m", "pip", command, "--no-index", *arguments)
        assert done.returncode == 0, f"pip {command} failed:\n{done.stdout}{done.stderr}"

    def test_wheel_has_each_file_of_the_sources_and_no_other(self) -> None:
        sources = {
            path.relative_to(SDK / "src").as_posix()
            for path in (SDK / "src").rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        with zipfile.ZipFile(self.wheel) as wheel:
            files = {name for name in wheel.namelist() if ".dist-info/" not in name}
        self.assertIn("innkeeper/schema/desired.json", files)
        self.assertIn("innkeeper/py.typed", files)
        self.assertEqual(files, sources)

    def test_package_is_imported_without_a_dependency_when_it_is_installed(self) -> None:
        done = call(self.python, "-I", "-c", USED)
        self.assertEqual(done.returncode, 0, done.stderr)
        used = json.loads(done.stdout)
        self.assertTrue(Path(used["file"]).is_relative_to(self.folder / "environment"), used)
        version = re.search('^version = "(.+)"$', (SDK / "pyproject.toml").read_text(), re.M)
        assert version is not None
        self.assertEqual(used["version"], version[1])
        [required] = used["requires"]
        self.assertRegex(required, "^fastjsonschema *; *extra == .testing.$")

    def test_installed_package_runs_a_guest_when_it_has_the_extra_testing(self) -> None:
        lacking = call(self.python, "-I", "-c", GUEST)
        self.assertIn("No module named 'fastjsonschema'", lacking.stderr)
        [site] = (self.folder / "environment/lib").glob("python*/site-packages")
        extra = site / "fastjsonschema"
        extra.symlink_to(Path(fastjsonschema.__file__).parent)
        self.addCleanup(extra.unlink)

        done = call(self.python, "-I", "-c", GUEST)

        self.assertEqual((done.returncode, done.stdout), (0, "Good day\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
