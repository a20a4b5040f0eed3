//! A command reaches nothing of another user.

use account::CommandName;
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, text};

use super::{Settings, event};

const STRANGER: &str = "00000000-0000-4000-8000-00000000000f";
const NOTHING: &str = "00000000-0000-4000-8000-0000000000ff";

/// Returns what each command that names something needs, without the id.
fn named(command: CommandName) -> Option<(usize, Value)> {
    let [key, endpoint, delivery] = [0, 1, 2];
    Some(match command {
        CommandName::KeysShow | CommandName::KeysRevoke | CommandName::KeysRotate => (key, json!({})),
        CommandName::KeysRename => (key, json!({"name": "mine"})),
        CommandName::EndpointsUpdate => (endpoint, json!({"events": ["wallet.deposit"]})),
        CommandName::EndpointsEnable
        | CommandName::EndpointsDisable
        | CommandName::EndpointsRemove
        | CommandName::EndpointsRotateSecret
        | CommandName::EndpointsTest
        | CommandName::DeliveriesList => (endpoint, json!({})),
        CommandName::DeliveriesShow | CommandName::DeliveriesResend => (delivery, json!({})),
        CommandName::KeysCreate | CommandName::KeysList | CommandName::EndpointsAdd | CommandName::EndpointsList => {
            return None;
        }
    })
}

/// Returns what the owner sees.
async fn seen(settings: &Settings, belongings: &[Value; 3]) -> [Value; 4] {
    let [key, endpoint, delivery] = belongings;
    [
        settings.done(CommandName::KeysShow, key.clone()).await,
        settings.done(CommandName::EndpointsList, json!({})).await,
        settings.done(CommandName::DeliveriesList, endpoint.clone()).await,
        settings.done(CommandName::DeliveriesShow, delivery.clone()).await,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_another_user_is_answered_as_what_does_not_exist_and_stays_as_it_is() {
    let (settings, proxy) = Settings::behind_proxy().await;
    let belongings = settings.belongings().await;
    let before = seen(&settings, &belongings).await;
    let mut walked = 0;
    for command in CommandName::ALL {
        let Some((kind, parameters)) = named(command) else { continue };
        let (name, id) = belongings[kind].as_object().unwrap().iter().next().unwrap();
        let mut answers = Vec::new();
        for id in [text(id), NOTHING.to_owned()] {
            let mut parameters = parameters.clone();
            parameters[name] = json!(id);
            proxy.take_calls();
            let answer = settings.answer(event(STRANGER, command, &parameters)).await;
            let calls: Vec<_> = proxy.take_calls().into_iter().map(|call| call.operation).collect();
            assert_eq!(answer["error"]["code"], "not_found", "{command}: {answer}");
            answers.push((answer.to_string().replace(&id, "ID"), calls));
        }
        assert_eq!(answers[0], answers[1], "{command}");
        walked += 1;
    }
    assert_eq!(walked, CommandName::ALL.len() - 4);
    assert_eq!(seen(&settings, &belongings).await, before);
    for (command, empty) in [
        (CommandName::KeysList, json!({"keys": [], "unreadable": []})),
        (CommandName::EndpointsList, json!({"endpoints": [], "unreadable": []})),
    ] {
        assert_eq!(settings.answer(event(STRANGER, command, &json!({}))).await["result"], empty);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_leads_nowhere_but_on_in_the_list_that_was_asked_for() {
    let settings = Settings::new().await;
    let [_, theirs, _] = settings.belongings().await;
    settings.done(CommandName::EndpointsTest, theirs.clone()).await;
    let mut page = theirs;
    page["limit"] = json!(1);
    let cursor = settings.done(CommandName::DeliveriesList, page.clone()).await["cursor"].clone();
    assert!(cursor.is_string());
    let add = event(
        STRANGER,
        CommandName::EndpointsAdd,
        &json!({"url": tests::webhooks_cli::URL, "events": ["listing.sold"]}),
    );
    let own = settings.answer(add).await["result"]["id"].clone();
    let list = json!({"endpoint_id": own, "cursor": cursor});
    let listed = settings.answer(event(STRANGER, CommandName::DeliveriesList, &list)).await;
    assert_eq!(listed["result"], json!({"deliveries": [], "unreadable": [], "cursor": null}));
    page["cursor"] = cursor;
    let rest = event(OWNER, CommandName::DeliveriesList, &page);
    assert_eq!(settings.answer(rest).await["result"]["deliveries"].as_array().unwrap().len(), 1);
}
