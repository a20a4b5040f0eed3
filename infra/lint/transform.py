"""Prints a template as plain CloudFormation, with every default and every generated resource.

On deployment, CloudFormation does this step. Here SAM's own library does it, offline. Suppressions of linters are kept:
a resource's `Metadata` is copied to the resources generated from it.
"""

import json
import os
import sys
from pathlib import Path

# The library needs a region. Which one makes no difference here.
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.managed_policy_translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform

UPLOADED = {"CodeUri": "s3://bucket/key", "TemplateURL": "https://bucket.s3.amazonaws.com/key"}


def main() -> None:
    template = yaml_parse(Path(sys.argv[1]).read_text())
    for resource in template["Resources"].values():
        # The library wants the addresses of uploaded files, which `sam package` would put here. Any address will do.
        for name, uploaded in UPLOADED.items():
            if name in resource.get("Properties", {}):
                resource["Properties"][name] = uploaded
    defaults = {name: given["Default"] for name, given in template.get("Parameters", {}).items() if "Default" in given}
    made = transform(template, defaults, ManagedPolicyLoader(None), passthrough_metadata=True)
    json.dump(made, sys.stdout, indent=2)


main()
