use serde_json::Value;

use super::{document, misfits, operations};

/// Each link, followed with the example of the response that has it, fills a parameter that takes the value.
#[test]
fn each_link_leads_to_a_parameter_that_takes_its_value() {
    let document = document();
    let operations = operations(&document);
    let mut followed = 0;
    for (path, operation) in &operations {
        let ok = &operation["responses"]["200"];
        let example = &ok["content"]["application/json"]["example"];
        for (name, link) in ok["links"].as_object().into_iter().flatten() {
            let target = operations.iter().find(|(_, target)| target["operationId"] == link["operationId"]);
            let (_, target) = target.unwrap_or_else(|| panic!("{path} {name}: no such operation"));
            for (parameter, expression) in link["parameters"].as_object().unwrap() {
                let pointer = expression.as_str().and_then(|text| text.strip_prefix("$response.body#")).unwrap();
                let value = example.pointer(pointer).unwrap_or(&Value::Null);
                let taken =
                    target["parameters"].as_array().unwrap().iter().find(|taken| taken["name"] == parameter.as_str());
                let schema = &taken.unwrap_or_else(|| panic!("{path} {name}: no such parameter"))["schema"];
                assert_eq!(misfits(&document, schema, value), Vec::<String>::new(), "{path} {name}");
                followed += 1;
            }
        }
    }
    assert_eq!(followed, 3);
}
