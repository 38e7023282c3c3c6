// SPDX-License-Identifier: LGPL-2.1-or-later
// Numbers and elements as text for people.

const byId = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
    const made = document.createElement(tag);

    for (const [name, value] of Object.entries(attributes || {})) {
        if (name === "class")
            made.className = value;
        else if (name.startsWith("on"))
            made.addEventListener(name.slice(2), value);
        else
            made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
}

const countFormat = new Intl.NumberFormat("en");
const formatCount = (n) => countFormat.format(Math.round(n));

function formatShare(part, whole) {
    const percent = whole > 0 ? 100 * part / whole : 0;

    if (percent > 0 && percent < 0.01)
        return "<0.01%";
    return percent.toFixed(percent >= 99.995 ? 0 : percent >= 10 ? 1 : 2) + "%";
}

function formatSignedShare(difference) {
    const percent = 100 * difference;

    return (percent > 0 ? "+" : percent < 0 ? "−" : "±") + Math.abs(percent).toFixed(2) + "%";
}

// 1234567 as "1.23 M", for units of which there are many.
function formatLarge(n) {
    const sizes = ["", " k", " M", " G", " T", " P"];
    let i = 0;

    while (n >= 1000 && i < sizes.length - 1) {
        n /= 1000;
        i++;
    }
    return (i === 0 ? String(Math.round(n)) : n.toPrecision(3)) + sizes[i];
}

function formatDuration(ns) {
    const sizes = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9], ["min", 6e10], ["h", 3.6e12]];
    let chosen = sizes[0];

    for (const size of sizes)
        if (ns >= size[1])
            chosen = size;
    return (ns / chosen[1]).toPrecision(ns / chosen[1] >= 100 ? 4 : 3).replace(/\.0+$/, "") + " " + chosen[0];
}

// A weight with its unit.
function formatWeight(n, unit, event) {
    if (unit === "ns")
        return formatDuration(n);
    if (unit === "events")
        return formatLarge(n) + " " + (event || "events");
    return formatCount(n) + (Math.round(n) === 1 ? " sample" : " samples");
}

function formatShort(n, unit) {
    return unit === "ns" ? formatDuration(n) : unit === "events" ? formatLarge(n) : formatCount(n);
}

const pad = (n, width) => String(n).padStart(width, "0");

// The time of day. `ms` is of the clock of the page's texts, which need not be that of the reader.
function formatClock(ms, withFraction) {
    const date = new Date(ms);
    const text = `${pad(date.getUTCHours(), 2)}:${pad(date.getUTCMinutes(), 2)}:${pad(date.getUTCSeconds(), 2)}`;

    return withFraction ? `${text}.${pad(date.getUTCMilliseconds(), 3)}` : text;
}
