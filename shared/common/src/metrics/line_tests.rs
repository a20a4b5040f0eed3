use super::*;

fn lookup(name: &str) -> Option<String> {
    match name {
        "METRICS_NAMESPACE" => Some("Marketplace".to_owned()),
        "AWS_LAMBDA_FUNCTION_NAME" => Some("stack-me".to_owned()),
        _ => None,
    }
}

fn fill(line: &mut Line<'_>) {
    line.member("route", "a \"b\"");
    line.known("key_id", None::<&str>);
    line.known("cause", Some("none"));
    line.gauge(Metric::Latency, 1.25);
    line.store_calls();
    line.count(Metric::Failed, 0);
    line.count(Metric::Refused, 2);
    line.samples(Metric::EventToPost, &[]);
    line.samples(Metric::PostponedTimes, &[3, 1]);
}

fn text(meter: &Meter) -> String {
    let mut line = meter.line("batch");
    fill(&mut line);
    line.members(Timestamp::from_millis(1_795_176_000_000))
}

#[test]
fn a_line_is_a_document_of_the_metrics_that_are_not_zero() {
    assert_eq!(
        text(&Meter::from_environment(&lookup)),
        concat!(
            r#""message":"batch","FunctionName":"stack-me","StoreRetries":0,"route":"a \"b\"","cause":"none","Latency":1.25,"StoreCalls":0,"#,
            r#""Failed":0,"Refused":2,"PostponedTimes":[3,1],"#,
            r#""_aws":{"Timestamp":1795176000000,"CloudWatchMetrics":[{"Namespace":"Marketplace","#,
            r#""Dimensions":[["FunctionName"]],"Metrics":[{"Name":"Latency","Unit":"Milliseconds"},"#,
            r#"{"Name":"Refused","Unit":"Count"},{"Name":"PostponedTimes","Unit":"Count"}]}]}"#,
        )
    );
}

#[test]
fn without_a_namespace_it_counts_no_calls_and_asks_nothing_of_cloudwatch() {
    let rest = concat!(
        r#""route":"a \"b\"","cause":"none","Latency":1.25,"#,
        r#""Failed":0,"Refused":2,"PostponedTimes":[3,1]"#,
    );
    let function = r#""FunctionName":"stack-me","#;
    let empty = |name: &str| lookup(name).map(|value| if name == "METRICS_NAMESPACE" { String::new() } else { value });
    let nameless = |name: &str| lookup(name).filter(|_| name == "METRICS_NAMESPACE");
    for (meter, function) in
        [(Meter::default(), ""), (Meter::from_environment(&nameless), ""), (Meter::from_environment(&empty), function)]
    {
        assert_eq!(text(&meter), format!(r#""message":"batch",{function}{rest}"#));
        assert!(meter.interceptor().is_none());
    }
}

#[test]
fn a_line_without_metrics_is_no_document() {
    let meter = Meter::from_environment(&lookup);
    let mut line = meter.line("swept");
    line.count(Metric::Overdue, 0);
    let members = line.members(Timestamp::from_millis(0));
    assert_eq!(members, r#""message":"swept","FunctionName":"stack-me","StoreRetries":0,"Overdue":0"#);
}

#[test]
fn no_metric_has_more_values_than_cloudwatch_takes() {
    let meter = Meter::from_environment(&lookup);
    let mut line = meter.line("batch");
    line.samples(Metric::EventToPost, &[7; 101]);
    let members: serde_json::Value =
        serde_json::from_str(&format!("{{{}}}", line.members(Timestamp::from_millis(0)))).unwrap();
    assert_eq!(members["EventToPost"].as_array().unwrap().len(), 100);
}
