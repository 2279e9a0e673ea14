//! Categories and kinds of markers: how the profiler shows layers, waits, calls, requests and findings.

use iowhy_core::layer::Layer;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Category {
    name: &'static str,
    color: &'static str,
    subcategories: [&'static str; 1],
}

/// Categories beside the layers, after them.
const FURTHER: [(&str, &str); 2] = [("kernel", "darkgrey"), ("finding", "red")];
/// The category of kernel functions on the way to where the time is spent.
pub(super) const KERNEL: usize = Layer::ALL.len();
/// The category of findings.
pub(super) const FINDING: usize = Layer::ALL.len() + 1;

/// The index of a layer's category.
pub(super) fn of_layer(layer: Layer) -> usize {
    Layer::ALL.iter().position(|other| *other == layer).unwrap_or_default()
}

/// The layers in their order, and the rest. The one that is grey is what has no category; `transparent` draws nothing.
pub(super) fn categories() -> Vec<Category> {
    let layers = Layer::ALL.into_iter().map(|layer| (layer.id(), color(layer)));
    layers.chain(FURTHER).map(|(name, color)| Category { name, color, subcategories: ["Other"] }).collect()
}

fn color(layer: Layer) -> &'static str {
    match layer {
        Layer::Program => "green",
        Layer::Call => "lightblue",
        Layer::Filesystem => "blue",
        Layer::Cache | Layer::Copy => "purple",
        Layer::Memory => "magenta",
        Layer::Block => "orange",
        Layer::Device => "red",
        Layer::Journal | Layer::Writeback => "brown",
        Layer::Server => "lightred",
        Layer::Lock | Layer::CpuQueue => "yellow",
        Layer::Elsewhere => "transparent",
        Layer::Observer => "darkgrey",
        Layer::Unexplained => "grey",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MarkerSchema {
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    chart_label: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    table_label: Option<&'static str>,
    display: &'static [&'static str],
    fields: Vec<Field>,
    description: &'static str,
}

#[derive(Serialize)]
struct Field {
    key: &'static str,
    label: &'static str,
    format: &'static str,
}

const EVERYWHERE: &[&str] = &["marker-chart", "marker-table", "timeline-overview"];
const IN_LISTS: &[&str] = &["marker-chart", "marker-table"];

/// The kinds of markers. A kind is the `type` of [`Data`](super::columns::Data), a field one of its keys.
pub(super) fn schemas() -> Vec<MarkerSchema> {
    let schema =
        |name, display, labels: [Option<&'static str>; 2], fields: &[(_, _, _)], description| MarkerSchema {
            name,
            chart_label: labels[0],
            table_label: labels[1],
            display,
            fields: fields.iter().map(|&(key, label, format)| Field { key, label, format }).collect(),
            description,
        };
    vec![
        schema(
            "wait",
            EVERYWHERE,
            [None, Some("{marker.data.operation}")],
            &[
                ("operation", "Operation", "unique-string"),
                ("atDevice", "A request at the device", "duration"),
                ("inQueue", "Requests in a queue", "duration"),
                ("behindOthers", "Behind requests of other programs", "duration"),
            ],
            "The thread did not run. A sleep lasts until it gets a CPU: the wait for one after the wake-up is in it.",
        ),
        schema(
            "not-recorded",
            IN_LISTS,
            [None; 2],
            &[],
            "What the thread did was not recorded: switches are recorded in windows where they are many.",
        ),
        schema(
            "call",
            IN_LISTS,
            [Some("{marker.name} {marker.data.path}"), Some("{marker.data.path}")],
            &[("path", "File", "file-path"), ("value", "Returned", "integer")],
            "One of the longest system calls of those that were recorded; longer ones may lie where calls were not recorded.",
        ),
        schema(
            "request",
            EVERYWHERE,
            [None, Some("{marker.data.owner} {marker.data.bytes}")],
            &[
                ("owner", "Submitted by", "unique-string"),
                ("bytes", "Bytes", "bytes"),
                ("sector", "First sector", "integer"),
                ("inQueue", "In the queue", "duration"),
                ("atDevice", "At the device", "duration"),
            ],
            "A request of the block layer, from its queue to its completion.",
        ),
        schema(
            "finding",
            IN_LISTS,
            [Some("{marker.data.sentence}"); 2],
            &[
                ("sentence", "Cause", "string"),
                ("advice", "Advice", "string"),
                ("share", "Share of the wall time", "percentage"),
            ],
            "A statement about the whole run. It has no time of its own, so the marker is as long as the run.",
        ),
    ]
}
