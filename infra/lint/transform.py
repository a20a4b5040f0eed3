"""Prints what AWS makes of the SAM template: CloudFormation, with every default and generated resource in the open.

CloudFormation makes this step on its own side; here SAM's own library does, offline. Suppressions travel along: a
resource's `Metadata` is copied to what is generated from it.
"""

import json
import os
import sys
from pathlib import Path

# The library asks for a region, which decides nothing here.
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.managed_policy_translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform

UPLOADED = {"CodeUri": "s3://bucket/key", "TemplateURL": "https://bucket.s3.amazonaws.com/key"}


def main() -> None:
    template = yaml_parse(Path(sys.argv[1]).read_text())
    for resource in template["Resources"].values():
        # Local paths stand here until `sam package` has uploaded what they name.
        for name, uploaded in UPLOADED.items():
            if name in resource.get("Properties", {}):
                resource["Properties"][name] = uploaded
    defaults = {name: given["Default"] for name, given in template.get("Parameters", {}).items() if "Default" in given}
    made = transform(template, defaults, ManagedPolicyLoader(None), passthrough_metadata=True)
    json.dump(made, sys.stdout, indent=2)


main()
