#!/usr/bin/env python3
"""An option that a sentence of the program names is one that its reader can give. named.py BINARY SOURCES

Every sentence of cli that begins with the command it is of, and those that `matrix` passes on from the dry runs it starts. Standard library only."""
import glob
import os
import re
import subprocess
import sys
import tempfile

BINARY, SOURCES = os.path.abspath(sys.argv[1]), sys.argv[2]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
STRING = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+')
PASSED_ON = "dryrun"  # what these say is what a point of a matrix says


def taken_by(command):
    """The options in the help of a command, which is made of those that it takes."""
    text = subprocess.run([BINARY, "help", command], capture_output=True, text=True, check=True).stdout
    return set(OPTION.findall(text))


def sentences():
    """(file, command, sentence) of every string of cli that begins as messages do."""
    for path in sorted(glob.glob(os.path.join(SOURCES, "cli", "*.c"))):
        with open(path, encoding="utf-8") as source:
            text = source.read()
        for found in STRING.finditer(text):
            sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found.group()))
            command = re.match(r"oomsight (\w+): ", sentence)
            if command:
                yield os.path.basename(path), command.group(1), sentence


def test_a_sentence_names_options_of_its_command():
    seen, wrong = 0, []
    for name, command, sentence in sentences():
        for option in OPTION.findall(sentence):
            seen += 1
            if option not in taken_by(command):
                wrong.append((name, option, sentence))
    assert seen >= 20, seen
    assert not wrong, wrong


def test_what_a_point_of_a_matrix_says_can_be_given_to_matrix():
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "e", "bin"))
        for name, text in (("python", '#!/bin/sh\n[ "$1" = -c ] && { echo "engine 0.32.0"; exit 0; }\nexec sh "$@"\n'), ("vllm", "#!%s/e/bin/python\nexit 1\n" % folder)):
            path = os.path.join(folder, "e", "bin", name)
            with open(path, "w", encoding="utf-8") as script:
                script.write(text)
            os.chmod(path, 0o755)
        model = os.path.join(SOURCES, "tests/fixtures/models/small-llama")
        with open(os.path.join(folder, "m.yaml"), "w", encoding="utf-8") as matrix:
            matrix.write("mode: dryrun\nmodels: [%s]\ngpus: [L4]\nversions: [0.32.0]\nengines: {0.32.0: %s/e}\n" % (model, folder))
        words = [BINARY, "matrix", "--offline", "--quiet", "--no-cache", os.path.join(folder, "m.yaml")]
        without = subprocess.run(words, capture_output=True, text=True, check=False)
        named = set(OPTION.findall(without.stdout + without.stderr))
        assert "--cuda" in named, without
        assert named <= taken_by("matrix"), (named, without)
        given = subprocess.run(words[:2] + ["--cuda", "12"] + words[2:], capture_output=True, text=True, check=False)
        assert "brings no PyTorch" not in given.stdout + given.stderr, given


if __name__ == "__main__":
    for test in (test_a_sentence_names_options_of_its_command, test_what_a_point_of_a_matrix_says_can_be_given_to_matrix):
        test()
        print("ok", test.__name__)
