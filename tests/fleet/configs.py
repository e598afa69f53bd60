"""The configurations of programs that are not run here, as far as reading goes: well-formed, no option that its program does not
document, nothing that points nowhere; and Grafana's own types of a dashboard give back every field of ours.
usage: configs.py ; needs the environment of tools/fleet_venv.sh. Options are those documented for Fluent Bit 4 and 5, Vector 0.50
and the collector 0.130."""
import json
import os
import tomllib

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard

FLEET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/fleet")

FLUENT_BIT = {
    "service": {"flush", "storage.path", "storage.sync"},
    "tail": {"name", "tag", "path", "db", "read_from_head", "key", "buffer_chunk_size", "buffer_max_size", "storage.type"},
    "record_modifier": {"name", "match", "record"},
    "http": {"name", "match", "host", "port", "uri", "format", "json_date_key", "retry_limit"}}
VECTOR = {
    "file": {"type", "include", "read_from", "max_line_bytes"},
    "remap": {"type", "inputs", "source"},
    "clickhouse": {"type", "inputs", "endpoint", "database", "table", "skip_unknown_fields", "acknowledgements", "buffer"},
    "postgres": {"type", "inputs", "endpoint", "table", "acknowledgements", "buffer"}}
OPERATORS = {
    "json_parser": {"type", "parse_from", "parse_to", "on_error", "timestamp"},
    "copy": {"type", "if", "from", "to"}, "remove": {"type", "field"}, "add": {"type", "field", "value"}}
FILELOG = {"include", "start_at", "storage", "max_log_size", "operators"}


def read(*names):
    with open(os.path.join(FLEET, *names)) as f:
        return f.read()


def only(found, allowed, where):
    assert set(found) <= allowed, f"{where}: {set(found) - allowed}"


def fluent_bit(name):
    config = yaml.safe_load(read("fluent-bit", name))
    only(config, {"service", "pipeline"}, name)
    only(config["service"], FLUENT_BIT["service"], "service")
    tags = {plugin["tag"] for plugin in config["pipeline"]["inputs"]}
    for kind in ("inputs", "filters", "outputs"):
        for plugin in config["pipeline"][kind]:
            only(plugin, FLUENT_BIT[plugin["name"]], plugin["name"])
            assert kind == "inputs" or plugin["match"] in tags, plugin


def vector():
    config = tomllib.loads(read("vector", "vector.toml"))
    known = set(config["sources"]) | set(config["transforms"])
    for kind in ("sources", "transforms", "sinks"):
        for name, part in config[kind].items():
            only(part, VECTOR[part["type"]], name)
            assert set(part.get("inputs", [])) <= known, name
    assert all(sink["buffer"]["max_size"] >= 268435488 for sink in config["sinks"].values())  # the least a disk buffer may have
    assert all(sink["acknowledgements"]["enabled"] for sink in config["sinks"].values())


def collector():
    config = yaml.safe_load(read("otel", "collector.yaml"))
    receiver = config["receivers"]["filelog/oomsight"]
    only(receiver, FILELOG, "filelog")
    for operator in receiver["operators"]:
        only(operator, OPERATORS[operator["type"]], operator["type"])
    assert receiver["storage"] in config["extensions"] and set(config["service"]["extensions"]) == set(config["extensions"])
    for pipeline in config["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            assert set(pipeline[kind]) == set(config[kind]), kind  # nothing points nowhere, nothing is left over


def lost(ours, theirs, where=""):
    """Fields of ours that are not in what came back."""
    if isinstance(ours, dict):
        for key, value in ours.items():
            if not isinstance(theirs, dict) or key not in theirs:
                yield f"{where}/{key}"
            else:
                yield from lost(value, theirs[key], f"{where}/{key}")
    elif isinstance(ours, list):
        if len(ours) != len(theirs):
            yield f"{where}: {len(ours)} and {len(theirs)}"
        for number, (a, b) in enumerate(zip(ours, theirs)):
            yield from lost(a, b, f"{where}[{number}]")
    elif ours != theirs:
        yield f"{where}: {ours!r} and {theirs!r}"


def grafana():
    register_default_plugins()
    board = json.loads(read("grafana", "oomsight.json"))
    back = json.loads(json.dumps(dashboard.Dashboard.from_json(board), cls=JSONEncoder))
    missing = list(lost(board, back))
    assert not missing, missing
    names = {variable["name"] for variable in board["templating"]["list"]}
    ids, taken = set(), set()
    for panel in board["panels"]:
        assert panel["id"] not in ids
        ids.add(panel["id"])
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & taken, panel["title"]
        taken |= cells
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] in ("${prometheus}", "${postgresql}") and {"prometheus", "postgresql"} <= names
    list(yaml.safe_load_all(read("grafana", "provisioning.yaml")))


fluent_bit("fluent-bit.yaml")
vector()
collector()
grafana()
print("ok Fluent Bit, Vector and collector configurations are well-formed and use documented options; the dashboard survives Grafana's types")
