"""The results so far, in a folder. It has JSON files, each of which is written whole or not at all, and files with a
JSON object in each line, to which lines are added."""
import json
import os

from lab.machine import Failed


class Files:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        """Returns the content of a file. If it is missing or is no JSON, returns None, and the caller makes it
        again."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def lines(self, name):
        """Returns the objects of all complete lines; there are none if the file is missing."""
        objects = []
        try:
            with open(self.path(name), encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    if line.endswith("\n"):
                        objects.append(json.loads(line))
        except FileNotFoundError:
            pass
        except ValueError as error:
            raise Failed(f"{self.path(name)}, line {number}, is no JSON: {error}") from None
        return objects

    def add(self, name, content):
        """Adds a line. Removes an incomplete last line, which an interrupted run left."""
        with open(self.path(name), "ab+") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(json.dumps(content).encode() + b"\n")

    def write(self, name, content):
        self.replace(name, json.dumps(content, indent=1) + "\n")

    def write_lines(self, name, objects):
        self.replace(name, "".join(json.dumps(each) + "\n" for each in objects))

    def replace(self, name, text):
        temporary = self.path(name) + ".part"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, self.path(name))
