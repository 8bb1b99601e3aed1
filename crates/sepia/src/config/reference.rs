//! What is generated from the table of options: the commented default file, the JSON Schema for
//! editors, and the reference page.

use serde_json::{Map, Value, json};

use super::option::{Kind, OptionRow, Preset, Section};
use crate::base::{ByteSize, Period};

/// The width of comments in the default file.
const COLUMNS: usize = 96;

/// A commented configuration file that parses to the defaults, with one gateway.
#[must_use]
pub fn default_file() -> String {
    let mut file = String::from(
        "# The configuration of Sepia. Everything below is the default except the listener.\n\
         # Check it with `sepia check --config FILE`; SIGHUP or `sepia reload` takes it over.\n",
    );
    for section in Section::ALL {
        file.push_str(&format!("\n# {}\n\n", section.sentence()));
        if *section != Section::Root {
            file.push_str(&format!("{}\n", section.header()));
        }
        section.options().for_each(|option| encode_option(&mut file, option));
    }
    file
}

/// An option as comment and line; the line is a comment too where there is no fixed default.
fn encode_option(file: &mut String, option: &OptionRow) {
    let mut comment = option.sentence.to_owned();
    if let Preset::Depends(on) = option.preset {
        comment.push_str(&format!(" Default: {on}."));
    }
    if let Some(role) = option.role {
        comment.push_str(&format!(" (role {})", role.name()));
    }
    wrap(&comment).iter().for_each(|line| file.push_str(&format!("# {line}\n")));
    let is_other_role = option.role.is_some_and(|role| role.name() != "reverse");
    let (mark, value) = match option.preset {
        Preset::Is(value) if is_other_role => ("# ", value),
        Preset::Is(value) => ("", value),
        Preset::Needed => ("", option.example),
        Preset::Depends(_) => ("# ", option.example),
    };
    file.push_str(&format!("{mark}{} = {}\n", option.key, option.file_notation(value)));
}

/// Breaks a text between words.
fn wrap(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last().map_or(0, String::len);
        if line + word.len() + 1 > COLUMNS {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// The JSON Schema (draft 2020-12) of the configuration file.
#[must_use]
pub fn schema() -> Value {
    let mut properties = Map::new();
    for option in Section::Root.options() {
        properties.insert(option.key.into(), option_schema(option));
    }
    for section in Section::ALL.iter().filter(|section| **section != Section::Root) {
        let table = table_schema(*section);
        let shape = match section {
            Section::Listen => json!({ "type": "array", "minItems": 1, "items": table }),
            _ => table,
        };
        properties.insert(section.name().into(), shape);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of Sepia",
        "type": "object",
        "properties": properties,
        "required": ["listen"],
        "additionalProperties": false,
    })
}

fn table_schema(section: Section) -> Value {
    let properties: Map<String, Value> =
        section.options().map(|option| (option.key.into(), option_schema(option))).collect();
    let mut table = json!({
        "type": "object",
        "description": section.sentence(),
        "properties": properties,
        "additionalProperties": false,
    });
    if section == Section::Listen {
        table["required"] = json!(["address", "role"]);
        table["allOf"] = json!([{
            "if": { "properties": { "role": { "const": "reverse" } } },
            "then": { "required": ["to"] },
        }]);
    }
    table
}

fn option_schema(option: &OptionRow) -> Value {
    let mut schema = match option.kind {
        Kind::Size { min, max, .. } => json!({ "anyOf": [
            { "type": "string", "pattern": ByteSize::PATTERN },
            { "type": "integer", "minimum": min, "maximum": max },
        ]}),
        Kind::Time { .. } => json!({ "type": "string", "pattern": Period::PATTERN }),
        Kind::Number { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Kind::Switch { .. } => json!({ "type": "boolean" }),
        Kind::Text { choices: [], .. } => json!({ "type": "string" }),
        Kind::Text { choices, .. } => json!({ "enum": choices }),
        Kind::List { .. } if option.is_single_in_file() => json!({ "type": "string" }),
        Kind::List { .. } => {
            json!({ "type": "array", "items": { "type": ["string", "integer"] } })
        }
    };
    schema["description"] = json!(option.sentence);
    let example: Value = file_value(option, option.example);
    schema["examples"] = json!([example]);
    if let Preset::Is(value) = option.preset {
        schema["default"] = file_value(option, value);
    }
    schema
}

/// A value in the file's notation as JSON; the two agree on texts, numbers, words and lists.
fn file_value(option: &OptionRow, value: &str) -> Value {
    serde_json::from_str(&option.file_notation(value)).unwrap_or(Value::Null)
}

/// The reference page of all options.
#[must_use]
pub fn reference_page() -> String {
    let mut page = String::from(
        "# Configuration\n\nEvery option, from the program's own table. The same names hold in the \
         file (`sepia serve --config FILE`)\nand, where a flag is given, on the command line.\n",
    );
    for section in Section::ALL {
        let title = match section {
            Section::Root => "Before all tables".into(),
            section => format!("`{}`", section.header()),
        };
        page.push_str(&format!("\n## {title}\n\n{}\n\n", section.sentence()));
        page.push_str("| key | flag | default | example | what it is for |\n");
        page.push_str("|---|---|---|---|---|\n");
        section.options().for_each(|option| page.push_str(&reference_row(option)));
    }
    page
}

fn reference_row(option: &OptionRow) -> String {
    let flag = option.flag.map_or(String::new(), |flag| format!("`--{flag} {}`", option.value));
    let preset = match option.preset {
        Preset::Is(value) => format!("`{}`", option.file_notation(value)),
        Preset::Depends(on) => on.to_owned(),
        Preset::Needed => "needed".to_owned(),
    };
    let role = option.role.map_or(String::new(), |role| format!(" Role {} only.", role.name()));
    let range = match option.kind {
        Kind::Size { min, max, .. } => format!(" {} to {}.", ByteSize(min), ByteSize(max)),
        Kind::Time { min, max, .. } => format!(" {} to {}.", Period(min), Period(max)),
        Kind::Number { min, max, .. } => format!(" {min} to {max}."),
        _ => String::new(),
    };
    let example = option.file_notation(option.example);
    let key = option.key;
    let sentence = option.sentence;
    format!("| `{key}` | {flag} | {preset} | `{example}` | {sentence}{range}{role} |\n")
}

#[cfg(test)]
mod tests {
    use super::{default_file, reference_page, schema};
    use crate::config::option::{OPTIONS, Section};
    use crate::config::{Config, Role};

    #[test]
    fn the_default_file_parses_to_the_defaults() {
        let config = Config::from_text("default", &default_file()).unwrap();
        let bare = "[[listen]]\naddress = \"127.0.0.1:8080\"\nrole = \"reverse\"\n\
                    to = [\"http://127.0.0.1:3000\"]\n";
        let defaults = Config::from_text("bare", bare).unwrap();
        assert_eq!(format!("{config:?}"), format!("{defaults:?}"));
        assert!(matches!(config.listeners[0].role, Role::Reverse(_)));
    }

    #[test]
    fn every_option_is_in_the_default_file_the_schema_and_the_page() {
        let (file, schema, page) = (default_file(), schema(), reference_page());
        for option in OPTIONS {
            assert!(file.contains(&format!("{} = ", option.key)), "{}", option.name());
            assert!(page.contains(&format!("| `{}` |", option.key)), "{}", option.name());
            let tables = &schema["properties"];
            let row = match option.section {
                Section::Root => &tables[option.key],
                Section::Listen => &tables["listen"]["items"]["properties"][option.key],
                section => &tables[section.name()]["properties"][option.key],
            };
            assert_eq!(row["description"], option.sentence, "{}", option.name());
            assert!(!row["examples"][0].is_null(), "{}", option.name());
        }
    }

    #[test]
    fn no_line_of_the_default_file_is_wider_than_a_page() {
        for line in default_file().lines() {
            assert!(line.len() <= 100, "{line}");
        }
    }
}
