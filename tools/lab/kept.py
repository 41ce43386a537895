"""Results of a long benchmark, kept in a file as they come, so that the same command goes on where it was interrupted."""
import json
import os
import sys


class Kept:
    """Lines of JSON in a file. The first says what all of them were measured with, each further one is a result."""

    def __init__(self, path, settings, asked=()):
        """Takes over what the file has. Without a file, begins one with `settings`. Ends the program if a setting whose
        name is in `asked` differs from the file's."""
        self.path, lines = path, []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if line.endswith("\n")]  # Others were cut off.
        self.settings = lines[0] if lines else settings
        other = {name: self.settings.get(name) for name in asked if self.settings.get(name) != settings[name]}
        if other:
            had = " ".join(f"{name.upper()}={value}" for name, value in other.items())
            sys.exit(f"bench: {path} has results of {had}: ask for the same, or name another folder (OUT=DIR)")
        self.rows = []
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(self.settings) + "\n")
        for row in lines[1:]:
            self.add(row)

    def add(self, row):
        self.rows.append(row)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def every(self, name):
        """Returns the different values that rows have of a name, in words."""
        return ", ".join(dict.fromkeys(str(row[name]) for row in self.rows))
