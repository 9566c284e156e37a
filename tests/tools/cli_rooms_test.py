"""src/cli lists like `tilewright --help`: a file or a folder for each subcommand, and nothing else."""

import pathlib
import re
import unittest

CLI = pathlib.Path(__file__).resolve().parents[2] / "src/cli"


class CliRooms(unittest.TestCase):
    def test_each_subcommand_has_its_place(self):
        table = re.search(r"kCommands\[?\]?.*?\{(.*?)\}", (CLI / "tool/commands.cpp").read_text(), re.S).group(1)
        commands = set(re.findall(r"\badd_(\w+)", table))
        self.assertGreater(len(commands), 10)
        places = {path.stem for path in CLI.iterdir()} - {"main", "tool"}
        self.assertEqual(commands, places)


if __name__ == "__main__":
    unittest.main()
