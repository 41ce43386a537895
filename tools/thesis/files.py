"""What has been done so far: a folder of JSON files, each written whole or not at all."""
import json
import os


class Files:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def read(self, name):
        """None where it is not there, or is no JSON: then it is made again."""
        try:
            with open(self.path(name), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return None

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)) or ".", exist_ok=True)
        temporary = self.path(name) + ".part"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
        os.replace(temporary, self.path(name))
