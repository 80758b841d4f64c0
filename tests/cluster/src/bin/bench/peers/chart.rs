//! A chart of horizontal bars as SVG.

use std::fmt::Write as _;

use crate::peers::figure::Figure;

/// The colours of the series, readable on white and on black.
const COLOURS: [&str; 2] = ["#3b6fb6", "#9db8de"];
/// Left of the bars is the name of the controller.
const LEFT: f64 = 150.0;
/// The longest bar.
const WIDTH: f64 = 380.0;
/// Right of the bars is the figure.
const RIGHT: f64 = 170.0;
const ROW: f64 = 22.0;
const TOP: f64 = 56.0;

/// A bar with a line from the lowest to the highest value.
pub(crate) struct Bar {
    /// The name left of it; empty if the bar above has it.
    pub(crate) name: String,
    /// Which of the series it is of.
    pub(crate) series: usize,
    pub(crate) figure: Figure,
}

/// Bars with one scale.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) unit: &'a str,
    /// The name of each series.
    pub(crate) legend: Vec<&'a str>,
    pub(crate) bars: Vec<Bar>,
}

impl Chart<'_> {
    /// The chart as SVG.
    pub(crate) fn svg(&self) -> String {
        let highest = self.bars.iter().filter_map(|bar| bar.figure.range()).map(|(_, high)| high);
        let scale = WIDTH / highest.fold(f64::MIN_POSITIVE, f64::max);
        let mut y = TOP;
        let mut rows = String::new();
        for bar in &self.bars {
            if !bar.name.is_empty() && y > TOP {
                y += ROW / 2.0;
            }
            rows.push_str(&row(bar, y, scale));
            y += ROW;
        }
        let (width, height) = (LEFT + WIDTH + RIGHT, y + 12.0);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\" \
             fill=\"#24292f\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        let unit = if self.unit.is_empty() { String::new() } else { format!(", {}", self.unit) };
        let _ = writeln!(
            svg,
            "<text x=\"12\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{}{unit}</text>",
            self.title
        );
        let mut x = LEFT;
        for (name, colour) in self.legend.iter().zip(COLOURS) {
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"34\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\n\
                 <text x=\"{}\" y=\"45\">{name}</text>",
                x + 18.0
            );
            x += 120.0;
        }
        svg + &rows + "</svg>\n"
    }
}

fn row(bar: &Bar, y: f64, scale: f64) -> String {
    let mut text = String::new();
    if !bar.name.is_empty() {
        let _ = writeln!(text, "<text x=\"12\" y=\"{:.0}\">{}</text>", y + 14.0, bar.name);
    }
    let (Some(median), Some((low, high))) = (bar.figure.median(), bar.figure.range()) else {
        return text;
    };
    let colour = COLOURS.get(bar.series).unwrap_or(&COLOURS[0]);
    let middle = y + 9.0;
    let _ = writeln!(
        text,
        "<rect x=\"{LEFT}\" y=\"{y:.0}\" width=\"{:.1}\" height=\"18\" fill=\"{colour}\"/>\n\
         <path d=\"M{:.1} {middle}H{:.1}\" stroke=\"#24292f\" stroke-width=\"1.5\"/>\n\
         <text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
        median * scale,
        LEFT + low * scale,
        LEFT + high * scale,
        LEFT + high * scale + 8.0,
        y + 14.0,
        bar.figure
    );
    text
}
