"""What an image consists of, as CycloneDX 1.5 on stdout: Debian's packages and those of this Python (cyclonedx.org/docs/1.5/json)."""
import importlib.metadata
import json
import pathlib
import subprocess
from urllib.parse import quote

DEBIAN_FIELDS = "${Package}\t${Version}\t${Architecture}\n"


def debian_distribution():
    fields = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return fields["ID"].strip('"')


def debian_packages():
    distribution = debian_distribution()
    listed = subprocess.run(["dpkg-query", "--show", f"--showformat={DEBIAN_FIELDS}"], capture_output=True, text=True, check=True).stdout
    for name, version, architecture in (line.split("\t") for line in listed.splitlines()):
        yield component(name, version, f"pkg:deb/{distribution}/{name}@{quote(version)}?arch={architecture}")


def python_packages():
    for package in importlib.metadata.distributions():
        name, version = package.metadata["Name"], package.version
        yield component(name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{quote(version)}")
        yield from bundled_libraries(package)


def bundled_libraries(package):
    """What auditwheel copied into a wheel, by the list that it leaves there."""
    for file in package.files or []:
        if file.parent.name == "sboms" and file.name.endswith(".cdx.json"):
            for each in json.loads(file.read_text())["components"]:
                name, version = each["name"], each.get("version", "unknown")
                yield component(name, version, each.get("purl", f"pkg:generic/{quote(name)}@{quote(version)}"))


def component(name, version, purl):
    return {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}


def main():
    components = {each["purl"]: each for each in [*debian_packages(), *python_packages()]}
    print(json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": [components[purl] for purl in sorted(components)]}, indent=1))


if __name__ == "__main__":
    main()
