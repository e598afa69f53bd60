#!/usr/bin/env python3
"""The Kustomize folders of examples/fleet: everything named is there and used, patches meet what they change, and what comes out of them is
put together here (no kubectl) and fits Kubernetes' own schema. The Helm chart, rendered by Go's own templates (helm is in no registry), gives the same objects.
usage: kubernetes.py [FOLDER]; needs the environment of tools/fleet_venv.sh."""
import os
import re
import sys
import tempfile

import go_template
import kubernetes_validate
import yaml

FOLDER = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/fleet/kubernetes")
KEYS = {"apiVersion", "kind", "resources", "patches"}
RELEASE = "1.37"


def documents(path):
    with open(path, encoding="utf-8") as text:
        return [one for one in yaml.safe_load_all(text) if one]


def name_of(one):
    return one["kind"], one["metadata"]["name"]


def patched(old, new):
    """As a strategic merge does it: mappings by key, lists of named things by name, other lists as a whole."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: patched(old[key], new[key]) if key in old and key in new else new.get(key, old.get(key)) for key in {**old, **new}}
    if isinstance(old, list) and isinstance(new, list) and all(isinstance(one, dict) and "name" in one for one in old + new):
        names = {one["name"]: one for one in old}
        for one in new:
            names[one["name"]] = patched(names[one["name"]], one) if one["name"] in names else one
        return list(names.values())
    return new


def build(folder):
    """What `kubectl kustomize` would print, as a list."""
    given = documents(os.path.join(folder, "kustomization.yaml"))[0]
    assert set(given) <= KEYS and given["kind"] == "Kustomization", given
    found, named = {}, {"kustomization.yaml"}
    for resource in given["resources"]:
        path = os.path.normpath(os.path.join(folder, resource))
        for one in build(path) if os.path.isdir(path) else documents(path):
            assert name_of(one) not in found, name_of(one)
            found[name_of(one)] = one
        named.add(os.path.relpath(path, folder))
    for patch in given.get("patches", []):
        named.add(patch["path"])
        for one in documents(os.path.join(folder, patch["path"])):
            assert name_of(one) in found, ("changes nothing", name_of(one))
            found[name_of(one)] = patched(found[name_of(one)], one)
    unused = {name for name in os.listdir(folder) if name.endswith(".yaml")} - named
    assert not unused, ("named by no kustomization", folder, unused)
    return list(found.values())


def look(everything):
    sets = [one for one in everything if one["kind"] == "DaemonSet"]
    assert len(sets) == 1
    pod = sets[0]["spec"]["template"]
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    ports, mounted = set(), set()
    for container in pod["spec"]["containers"]:
        mounts = [mount["name"] for mount in container["volumeMounts"]]
        assert set(mounts) <= volumes, (container["name"], mounts)
        mounted |= set(mounts)
        ports |= {port["name"] for port in container.get("ports", [])}
        security = container["securityContext"]
        assert security["capabilities"] == {"drop": ["ALL"]} and security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"], container["name"]
        assert container["resources"]["limits"]["memory"], container["name"]
    assert mounted == volumes, volumes - mounted
    follower = next(c for c in pod["spec"]["containers"] if c["name"] == "oomsight")
    state = next(m["mountPath"] for m in follower["volumeMounts"] if m["name"] == "state")
    assert "--state=" + state in follower["args"] and all("hostPath" in v for v in pod["spec"]["volumes"]), "positions outlive the pod"
    for one in everything:
        if one["kind"] == "PodMonitor":  # no part of Kubernetes: its schema is the operator's
            wanted = one["spec"]["selector"]["matchLabels"]
            assert wanted.items() <= pod["metadata"]["labels"].items() and one["metadata"]["namespace"] == sets[0]["metadata"]["namespace"], wanted
            assert {end["port"] for end in one["spec"]["podMetricsEndpoints"]} <= ports, ports
        else:
            kubernetes_validate.validate(one, RELEASE, strict=True)


def chart(values):
    """What `helm template` would print, as a list: only what the templates take is given."""
    helm, found = os.path.join(FOLDER, "../helm"), []
    with tempfile.TemporaryDirectory() as folder:
        given, out = os.path.join(folder, "given.yaml"), os.path.join(folder, "out.yaml")
        with open(given, "w", encoding="utf-8") as text:
            yaml.safe_dump({"Values": values, "Release": {"Namespace": "oomsight"}}, text)
        for name in sorted(os.listdir(os.path.join(helm, "templates"))):
            go_template.render_template(os.path.join(helm, "templates", name), given, out)
            found += documents(out)
    return found


def look_at_chart():
    """Each Kustomize folder is the chart with one value; each value is used, and changes what it says."""
    helm = os.path.join(FOLDER, "../helm")
    values = documents(os.path.join(helm, "values.yaml"))[0]
    assert documents(os.path.join(helm, "Chart.yaml"))[0]["apiVersion"] == "v2"
    used = set()
    for name in os.listdir(os.path.join(helm, "templates")):
        with open(os.path.join(helm, "templates", name), encoding="utf-8") as text:
            used |= set(re.findall(r"\.Values\.(\w+)", text.read()))
    assert used == set(values), used ^ set(values)
    for folder, more in ((".", {}), ("file", {"file": True}), ("podmonitor", {"podMonitor": True})):
        ours = chart({**values, **more})
        theirs = [one for one in build(os.path.join(FOLDER, folder)) if one["kind"] != "Namespace"]
        assert sorted(ours, key=name_of) == sorted(theirs, key=name_of), folder
    odd = {"image": 'x: "y"', "logs": "/a b", "state": "/s", "metrics": "/m", "file": True, "rotateMegabytes": 7, "otlp": "http://h:4318 #", "podMonitor": True,
           "exporterImage": "e", "runAsUser": 0}
    assert set(odd) == set(values)
    whole = chart(odd)
    look(whole)
    pod = next(one for one in whole if one["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    assert [c["image"] for c in pod["containers"]] == [odd["image"], odd["image"], "e"] and pod["securityContext"]["runAsNonRoot"] is False, pod
    assert "--otlp=http://h:4318 #" in pod["containers"][0]["args"] and "+7M" in pod["containers"][1]["args"][0], pod
    assert [v["hostPath"]["path"] for v in pod["volumes"]] == ["/a b", "/s", "/m"], pod
    print("ok helm gives what the Kustomize folders give")


def main():
    look_at_chart()
    folders = [folder for folder, _, names in os.walk(FOLDER) if any(name.endswith(".yaml") for name in names)]
    assert len(folders) >= 3, folders
    for folder in folders:
        look(build(folder))
        print("ok %s fits the schema of Kubernetes %s" % (os.path.relpath(folder, FOLDER), RELEASE))


if __name__ == "__main__":
    main()
