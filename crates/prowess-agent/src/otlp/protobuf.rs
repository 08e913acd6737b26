//! Encodes an `ExportTraceServiceRequest` as Protocol Buffers, from its JSON form.

use serde_json::Value as Json;

/// Encodes a request. The field numbers are those of `opentelemetry/proto/trace/v1/trace.proto`.
pub(super) fn encode(request: &Json) -> Vec<u8> {
    let mut out = Message::default();
    for resource_spans in list(&request["resourceSpans"]) {
        out.message(1, |out| {
            out.message(1, |out| attributes(out, 1, &resource_spans["resource"]["attributes"]));
            for scope_spans in list(&resource_spans["scopeSpans"]) {
                out.message(2, |out| {
                    out.message(1, |out| {
                        out.text(1, &scope_spans["scope"]["name"]);
                        out.text(2, &scope_spans["scope"]["version"]);
                    });
                    for it in list(&scope_spans["spans"]) {
                        out.message(2, |out| span(out, it));
                    }
                });
            }
        });
    }
    out.0
}

fn span(out: &mut Message, span: &Json) {
    out.id(1, &span["traceId"]);
    out.id(2, &span["spanId"]);
    out.id(4, &span["parentSpanId"]);
    out.text(5, &span["name"]);
    out.number(6, span["kind"].as_u64().unwrap_or_default());
    out.time(7, &span["startTimeUnixNano"]);
    out.time(8, &span["endTimeUnixNano"]);
    attributes(out, 9, &span["attributes"]);
    for event in list(&span["events"]) {
        out.message(11, |out| {
            out.time(1, &event["timeUnixNano"]);
            out.text(2, &event["name"]);
            attributes(out, 3, &event["attributes"]);
        });
    }
    out.message(15, |out| {
        out.text(2, &span["status"]["message"]);
        out.number(3, span["status"]["code"].as_u64().unwrap_or_default());
    });
}

fn attributes(out: &mut Message, field: u64, attributes: &Json) {
    for attribute in list(attributes) {
        out.message(field, |out| {
            out.text(1, &attribute["key"]);
            out.message(2, |out| value(out, &attribute["value"]));
        });
    }
}

/// Writes a value, even if it is empty, false or 0.
fn value(out: &mut Message, value: &Json) {
    if let Some(text) = value["stringValue"].as_str() {
        out.bytes(1, text.as_bytes());
    } else if let Some(is_true) = value["boolValue"].as_bool() {
        out.varint(2, u64::from(is_true));
    } else if let Some(number) = value["intValue"].as_str() {
        // A negative number is written as its 64-bit pattern.
        let signed = number.parse::<i64>().map(i64::cast_unsigned);
        out.varint(3, signed.or_else(|_| number.parse()).unwrap_or_default());
    } else if let Some(number) = value["doubleValue"].as_f64() {
        out.fixed(4, number.to_bits());
    } else if let Some(values) = value["arrayValue"]["values"].as_array() {
        out.message(5, |out| {
            for it in values {
                out.message(1, |out| self::value(out, it));
            }
        });
    }
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

/// The encoded fields of a message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.raw(field << 3 | 2);
        self.raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a text; an empty one is omitted.
    fn text(&mut self, field: u64, text: &Json) {
        if let Some(text) = text.as_str().filter(|it| !it.is_empty()) {
            self.bytes(field, text.as_bytes());
        }
    }

    /// Writes an id that is given in hexadecimal.
    fn id(&mut self, field: u64, id: &Json) {
        let hex = id.as_str().unwrap_or_default();
        let bytes: Option<Vec<u8>> = (0..hex.len())
            .step_by(2)
            .map(|at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
            .collect();
        if let Some(bytes) = bytes.filter(|it| !it.is_empty()) {
            self.bytes(field, &bytes);
        }
    }

    /// Writes a number; 0 is omitted.
    fn number(&mut self, field: u64, number: u64) {
        if number != 0 {
            self.varint(field, number);
        }
    }

    fn varint(&mut self, field: u64, number: u64) {
        self.raw(field << 3);
        self.raw(number);
    }

    /// Writes a time that is given in decimal digits.
    fn time(&mut self, field: u64, time: &Json) {
        self.fixed(field, time.as_str().and_then(|it| it.parse().ok()).unwrap_or_default());
    }

    fn fixed(&mut self, field: u64, bits: u64) {
        self.raw(field << 3 | 1);
        self.0.extend_from_slice(&bits.to_le_bytes());
    }

    /// Writes a varint: seven bits per byte, the lowest first.
    fn raw(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_bytes_of_the_specification() {
        let bytes = |json: Json| {
            let mut out = Message::default();
            value(&mut out, &json);
            out.0
        };
        assert_eq!(bytes(json!({"stringValue": "ab"})), [0x0A, 2, b'a', b'b']);
        assert_eq!(bytes(json!({"stringValue": ""})), [0x0A, 0]);
        assert_eq!(bytes(json!({"boolValue": false})), [0x10, 0]);
        assert_eq!(bytes(json!({"intValue": "300"})), [0x18, 0xAC, 0x02]);
        let minus = [0x18, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01];
        assert_eq!(bytes(json!({"intValue": "-1"})), minus);
        assert_eq!(bytes(json!({"doubleValue": 1.0})), [0x21, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F]);
        let array = json!({"arrayValue": {"values": [{"stringValue": "x"}]}});
        assert_eq!(bytes(array), [0x2A, 5, 0x0A, 3, 0x0A, 1, b'x']);
    }

    #[test]
    fn an_id_that_is_none_is_left_out() {
        let mut out = Message::default();
        for id in [json!(null), json!(""), json!("zz"), json!("ä1"), json!("abc")] {
            out.id(1, &id);
        }
        assert_eq!(out.0, [0; 0]);
        out.id(1, &json!("00ff"));
        assert_eq!(out.0, [0x0A, 2, 0, 0xFF]);
    }
}
