// SPDX-License-Identifier: LGPL-2.1-or-later
// The page as a whole: joins data, pictures, table and controls, and shows each change of the state.

const data = JSON.parse(byId("data").textContent);
const model = decodeModel(data);
const heat = data.heat ? decodeHeat(data) : null;
const palette = new Palette(model);
const defaults = {
    view: "top", frame: -1, query: "", zoom: 0, shape: data.icicle ? "icicle" : "flame", color: "kind",
    order: "weight", merge: data.by_address ? "address" : "name", range: null, base: null, theme: null,
};
const systemDark = matchMedia("(prefers-color-scheme: dark)");
let state = readAddress(defaults);
let weights, total, totalBefore; // of what is selected
let compared = false, matches = null, sums = null;

const frameMap = () => (state.merge === "name" ? model.byName : null);
const sumOf = (column) => column.reduce((a, b) => a + b, 0);

// -- what is said about a box -------------------------------------------------------------------

function whereOf(frame) {
    const kind = kindOf(model, frame), dso = dsoOf(model, frame), words = [];

    if (frame < 0)
        return "everything";
    if (dso)
        words.push(dso);
    if (kind !== "user" || !dso)
        words.push(kind);
    if (model.frames.address && state.merge === "address" && !LABEL_KINDS.has(kind)) {
        words.push("0x" + model.frames.address[frame].toString(16));
        if (model.frames.place[frame])
            words.push(model.frames.place[frame]);
    }
    return words.join(" · ");
}

const weightText = (n) => formatWeight(n, model.unit, data.event);

// Rows of a tooltip: a word, a share, a weight.
function weightRows(tree, node) {
    const rows = [["Total", formatShare(tree.total[node], total), weightText(tree.total[node])]];

    // A box of a tree of callers is a way into a function, and not the function.
    if (!tree.upwards)
        rows.push(["Self", formatShare(tree.self[node], total), weightText(tree.self[node])]);
    if (tree.samples)
        rows.push(["Samples", "", formatCount(tree.samples[node])]);
    if (tree.before) {
        const change = tree.total[node] / (total || 1) - tree.before[node] / (totalBefore || 1);

        rows.push(["Before", formatShare(tree.before[node], totalBefore), weightText(tree.before[node])]);
        rows.push(["Change", formatSignedShare(change), changeSureness(tree, node) < 0.1 ? "may be noise" : ""]);
    }
    return rows;
}

function sentenceOf(tree, node) {
    const name = nameOf(model, tree.frame[node]);
    const rows = weightRows(tree, node).map(([word, share, text]) => `${word.toLowerCase()} ${share} ${text}`);

    return `${name}, ${whereOf(tree.frame[node])}: ${rows.join(", ")}`;
}

function say(text) {
    byId("announcement").textContent = text;
}

function showToast(text) {
    const toast = byId("toast");

    toast.textContent = text;
    toast.hidden = false;
    clearTimeout(showToast.timer);
    showToast.timer = setTimeout(() => { toast.hidden = true; }, 1800);
}

function placeTip(event) {
    const tip = byId("tip");

    tip.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = tip;
    const left = event.clientX + 16 + width > innerWidth ? event.clientX - width - 12 : event.clientX + 16;
    const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18;

    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
}

function showTip(pane, node, event) {
    if (node < 0 || !event) {
        byId("tip").hidden = true;
        return;
    }
    const { tree } = pane.layout, frame = tree.frame[node];
    const dot = element("span", { class: "dot" });

    dot.style.background = pane.on.color(tree, node).fill;
    byId("tip").replaceChildren(
        element("div", { class: "tip-name" }, dot, nameOf(model, frame)),
        element("div", { class: "tip-where" }, whereOf(frame)),
        element("table", {}, ...weightRows(tree, node).map(([word, share, text]) => element("tr", {},
            element("th", {}, word), element("td", {}, share), element("td", {}, text)))));
    if (pane.zoomed > 0)
        byId("tip").append(element("div", { class: "tip-where" },
            `${formatShare(tree.total[node], tree.total[pane.zoomed])} of the zoomed box`));
    placeTip(event);
}

// -- colours --------------------------------------------------------------------------------------

// 0: the difference may well be chance, 1: hardly; from counts of samples.
function changeSureness(tree, node) {
    const a = tree.samples ? tree.samples[node] : tree.total[node];
    const b = tree.samplesBefore ? tree.samplesBefore[node] : tree.before[node];
    const allA = tree.samples ? sureTotals.samples : total, allB = tree.samplesBefore ? sureTotals.before : totalBefore;
    const scale = allB > 0 ? allA / allB : 0, spread = Math.sqrt(a + b * scale * scale) || 1;

    return Math.min(1, Math.max(0, (Math.abs(a - b * scale) / spread - 1.5) / 2));
}

let sureTotals = { samples: 0, before: 0 };

function changeOf(tree, node) {
    const a = tree.total[node] / (total || 1), b = tree.before[node] / (totalBefore || 1);

    return a + b > 0 ? (a - b) / (a + b) * changeSureness(tree, node) * 1.25 : 0;
}

// Colours as they are drawn, made once: by frame, or by steps of a change.
const CHANGE_STEPS = 24;
let drawn = new Map(), drawnFrames = [[], []];

function drawnColor(key, faded, make) {
    let color = drawn.get(key);

    if (!color) {
        const rgb = faded ? mix(make(), palette.ground, 0.68) : make();

        color = { fill: css(rgb), faded, word: (255 << 24 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0 };
        drawn.set(key, color);
    }
    return color;
}

function colorOf(tree, node) {
    const frame = tree.frame[node], faded = Boolean(matches), side = faded ? 0.5 : 0;

    if (faded && frame >= 0 && matches[frame])
        return drawnColor("match", false, () => palette.match);
    if (compared && tree.before && frame >= 0) {
        const step = Math.round(CHANGE_STEPS * Math.max(-1, Math.min(1, changeOf(tree, node))));

        return drawnColor(-100 - step + side, faded, () => palette.ofChange(step / CHANGE_STEPS));
    }
    const colors = drawnFrames[faded ? 1 : 0];

    return colors[frame + 1] || (colors[frame + 1] = drawnColor(frame + side, faded, () => palette.ofFrame(frame, state.color)));
}

// -- the picture ----------------------------------------------------------------------------------

function makePane(id, label) {
    const pane = new Pane(byId(id), label, palette, model, {
        color: colorOf,
        hover: (node, event) => showTip(pane, node, event),
        select: (node) => chooseNode(pane, node),
        zoom: (node) => {
            if (pane === paneA && state.view !== "sandwich")
                change({ zoom: node });
        },
    });

    return pane;
}

let chosenPane = null;
const paneA = makePane("pane-a", "Stacks");
const paneB = makePane("pane-b", "Callees");

function chooseNode(pane, node) {
    const { tree } = pane.layout, other = pane === paneA ? paneB : paneA;

    chosenPane = node >= 0 ? pane : null;
    other.selected = -1;
    other.draw();
    byId("chosen").hidden = node < 0;
    byId("details-hint").hidden = node >= 0;
    if (node < 0)
        return;
    const frame = tree.frame[node];

    byId("chosen-name").textContent = nameOf(model, frame);
    byId("chosen-where").textContent = whereOf(frame);
    byId("chosen-weight").replaceChildren(...weightRows(tree, node).map(([word, share, text]) =>
        element("span", {}, element("small", {}, word + " "), element("b", {}, share), text ? ` ${text}` : "")));
    byId("act-sandwich").disabled = byId("act-search").disabled = frame < 0;
    table.setChosen(frame);
    say(sentenceOf(tree, node));
}

function treeOfView() {
    const map = frameMap();

    if (state.view === "bottom")
        return treeBottomUp(model, weights, map);
    return treeTopDown(model, weights, map);
}

function showPicture(keepZoom) {
    const sandwich = state.view === "sandwich", flame = state.shape === "flame";
    const wanted = sandwich && state.frame >= 0 && state.frame < model.frames.n;

    byId("pane-b").hidden = byId("middle").hidden = !wanted;
    byId("pane-a").hidden = sandwich && !wanted;
    byId("empty").hidden = !(sandwich && !wanted) && total > 0;
    byId("empty").textContent = total > 0
        ? "Choose a function: the button ⇅ of a row in the table, or the key s on a box."
        : "There are no samples here.";
    byId("panes").classList.toggle("sandwich", sandwich);
    chooseNodeNone();
    if (wanted) {
        const frame = frameMap() ? frameMap()[state.frame] : state.frame;
        const callees = treeOfCallees(model, weights, frame, frameMap());

        byId("middle").replaceChildren(element("b", {}, nameOf(model, frame)),
            element("span", {}, `${formatShare(callees.total[0], total)} of all, self ${formatShare(callees.self[0], total)}`),
            element("small", {}, "callers above, callees below"));
        paneA.base = paneB.base = 1;
        paneA.canvas.setAttribute("aria-label", "Callers");
        paneA.setLayout(layOut(model, treeOfCallers(model, weights, frame, frameMap()), state.order), true);
        paneB.setLayout(layOut(model, callees, state.order), false);
    } else if (!sandwich) {
        paneA.base = 0;
        paneA.canvas.setAttribute("aria-label", state.view === "bottom" ? "Functions and their callers" : "Stacks");
        paneA.setLayout(layOut(model, treeOfView(), state.order), flame);
        if (keepZoom && state.zoom > 0 && state.zoom < paneA.layout.tree.n) {
            paneA.selected = state.zoom;
            paneA.zoom(state.zoom, true);
            chooseNode(paneA, state.zoom);
        } else
            change({ zoom: 0 });
    }
}

function chooseNodeNone() {
    chosenPane = null;
    paneA.selected = paneB.selected = -1;
    byId("chosen").hidden = true;
    byId("details-hint").hidden = false;
}

function showLegend() {
    const legend = byId("legend"), parts = [];

    if (compared) {
        const ramp = element("span", { class: "ramp", "aria-hidden": "true" });

        for (let i = -4; i <= 4; i++) {
            const step = element("i");

            step.style.background = css(palette.ofChange(i / 4));
            ramp.append(step);
        }
        parts.push(element("span", {}, "shrank"), ramp, element("span", {}, "grew"),
            element("span", { class: "quiet-text" }, "pale: may be noise"));
    } else {
        const share = new Map();

        for (let f = 0; f < model.frames.n; f++) {
            const key = state.color === "dso" ? dsoOf(model, f) : kindOf(model, f);

            if (!isLabel(model, f) && sums.self[f] > 0)
                share.set(key, (share.get(key) || 0) + sums.self[f]);
        }
        const sorted = [...share].sort((a, b) => b[1] - a[1]);

        for (const [key, self] of sorted.slice(0, 8)) {
            const dot = element("span", { class: "dot", "aria-hidden": "true" });

            dot.style.background = css(state.color === "dso" ? palette.ofDso(key) : palette.ofKind(key));
            parts.push(element("span", {}, dot, key || "(no file)", element("small", {}, ` ${formatShare(self, total)}`)));
        }
        if (sorted.length > 8)
            parts.push(element("span", { class: "quiet-text" }, `and ${formatCount(sorted.length - 8)} more`));
        parts.push(element("span", { class: "quiet-text" }, "of self time"));
    }
    if (data.folded > 0)
        parts.push(element("span", { class: "quiet-text" }, `rare stacks, ${formatCount(data.folded)} samples, end in [other]`));
    if (data.folded_labels > 0)
        parts.push(element("span", { class: "quiet-text" }, `${formatCount(data.folded_labels)} samples of rare groups are shown without their groups and times`));
    if (data.lost > 0)
        parts.push(element("span", { class: "quiet-text" }, `${formatCount(data.lost)} samples were lost`));
    legend.replaceChildren(...parts);
}

// -- search ---------------------------------------------------------------------------------------

function makeMatches(query) {
    const found = new Uint8Array(model.frames.n), byText = new Map();
    let regexp;

    try {
        regexp = new RegExp(query, /[A-Z]/.test(query.replace(/\\./g, "")) ? "u" : "iu");
    } catch {
        return null;
    }
    for (let f = 0; f < model.frames.n; f++) {
        const name = model.frames.name[f];

        if (!byText.has(name))
            byText.set(name, regexp.test(model.data.texts[name]));
        found[f] = byText.get(name) ? 1 : 0;
    }
    return found;
}

function showSearch() {
    const input = byId("search"), output = byId("matched");

    if (input.value !== state.query)
        input.value = state.query;
    matches = state.query ? makeMatches(state.query) : null;
    input.setAttribute("aria-invalid", String(Boolean(state.query) && !matches));
    if (!state.query)
        output.textContent = "";
    else if (!matches)
        output.textContent = "This is not a regular expression";
    else {
        const sum = matchedWeight(model, weights, matches);

        output.replaceChildren(element("b", {}, formatShare(sum, total)), ` matched, ${weightText(sum)}`);
    }
    table.setMatches(matches);
    paneA.draw();
    paneB.draw();
}

const quote = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

// -- the table ------------------------------------------------------------------------------------

const table = new FrameTable(byId("side"), model, palette, {
    choose: (frame) => {
        const query = `^${quote(nameOf(model, frame))}$`;

        change({ query: state.query === query ? "" : query });
        table.setChosen(frame);
        showSearch();
    },
    sandwich: (frame) => openSandwich(frame),
});

function openSandwich(frame) {
    change({ view: "sandwich", frame, zoom: 0 });
    showControls();
    showPicture(false);
}

// -- what is selected -----------------------------------------------------------------------------

function takeWeights() {
    const validRange = (range) => (heat && range && range[1] <= heat.n ? range : null);
    const range = validRange(state.range), base = validRange(state.base);

    if (range) {
        weights = { self: weightsOfRange(heat, model.nodes.n, range) };
        if (base)
            weights.before = weightsOfRange(heat, model.nodes.n, base);
    } else
        weights = { ...model.weights };
    compared = Boolean(weights.before);
    total = sumOf(weights.self);
    totalBefore = compared ? sumOf(weights.before) : 0;
    sureTotals = {
        samples: weights.samples ? sumOf(weights.samples) : 0,
        before: weights.samplesBefore ? sumOf(weights.samplesBefore) : 0,
    };
    sums = functionSums(model, weights, frameMap());
    table.colorBy = state.color;
    table.setSums(sums, total, totalBefore);
}

function showRanges() {
    if (!heat)
        return;
    const named = (range) => `${heatMap.textOf(range)} · ${formatCount(samplesOfRange(heat, range))} samples`;

    byId("range-chip").hidden = !state.range;
    byId("base-chip").hidden = !state.base;
    byId("compare").hidden = !state.range || Boolean(state.base);
    byId("compare").setAttribute("aria-pressed", String(heatMap.comparing));
    byId("range-text").textContent = state.range ? named(state.range) : "";
    byId("base-text").textContent = state.base ? "compared with " + named(state.base) : "";
    byId("heat-hint").textContent = heatMap.comparing
        ? "Drag over the span to compare with." : "Drag over the map to see the stacks of a span of time.";
    byId("heat-hint").hidden = Boolean(state.range) && !heatMap.comparing;
    heatMap.setRanges(state.range, state.base);
}

function setRange(range, isBase) {
    if (isBase && range) {
        heatMap.comparing = false;
        change({ base: range });
    } else
        change({ range, base: range ? state.base : null, zoom: 0 });
    if (!state.range)
        heatMap.comparing = false;
    showAll(false);
    if (range)
        say(`${heatMap.textOf(range)}, ${formatCount(samplesOfRange(heat, range))} samples`);
}

const heatMap = heat && new HeatMap(byId("heat"), heat, palette, {
    range: setRange,
    say,
    hover: (range, event) => {
        if (!range || !event) {
            byId("tip").hidden = true;
            return;
        }
        byId("tip").replaceChildren(element("div", { class: "tip-name" }, heatMap.textOf(range)),
            element("div", { class: "tip-where" }, `${formatCount(samplesOfRange(heat, range))} samples`));
        placeTip(event);
    },
});

function showHeatScale() {
    const parts = [element("span", {}, "0")];

    if (!heat)
        return;
    const ramp = element("span", { class: "ramp" });

    for (let i = 0; i <= 10; i++) {
        const step = element("i");

        step.style.background = css(palette.ofHeat(i / 10));
        ramp.append(step);
    }
    parts.push(ramp, element("span", {}, `${formatCount(heatMap.most)}+ samples per ${formatDuration(heat.bucketMs * 1e6)}`));
    byId("heat-scale").replaceChildren(...parts);
}

// -- controls -------------------------------------------------------------------------------------

function change(changed) {
    Object.assign(state, changed);
    writeAddress(state, defaults);
}

function showTheme() {
    const dark = state.theme ? state.theme === "dark" : systemDark.matches;

    document.documentElement.dataset.theme = dark ? "dark" : "light";
    palette.setTheme(dark);
    drawn = new Map();
    drawnFrames = [[], []];
    paneA.draw();
    paneB.draw();
    if (heatMap)
        heatMap.draw();
}

function showControls() {
    for (const button of document.querySelectorAll("[data-view]")) {
        const chosen = button.dataset.view === state.view;

        button.setAttribute("aria-checked", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
    }
    byId("shape").textContent = state.shape === "flame" ? "Flame" : "Icicle";
    byId("shape").disabled = state.view === "sandwich";
    for (const name of ["color", "order", "merge"])
        byId(name).value = state[name];
    byId("merge-label").hidden = !data.by_address;
    byId("color").disabled = compared;
}

function showAll(keepZoom) {
    takeWeights();
    showTheme();
    showControls();
    showPicture(keepZoom);
    showSearch();
    showLegend();
    showRanges();
    showHeatScale();
}

function setView(view) {
    const frame = chosenPane ? chosenPane.layout.tree.frame[chosenPane.selected] : state.frame;

    change({ view, zoom: 0, frame: view === "sandwich" ? frame : -1 });
    showControls();
    showPicture(false);
}

function reset() {
    change({ query: "", zoom: 0 });
    showSearch();
    if (paneA.layout && !byId("pane-a").hidden)
        paneA.zoom(0);
    if (paneB.layout && !byId("pane-b").hidden)
        paneB.zoom(0);
    chooseNodeNone();
    table.setChosen(-1);
}

// One step back: the search, then the zoom, then the selection, then the range.
function stepBack() {
    if (state.query) {
        change({ query: "" });
        showSearch();
    } else if (paneA.zoomed > 0 || paneB.zoomed > 0)
        reset();
    else if (chosenPane) {
        chooseNodeNone();
        paneA.draw();
        paneB.draw();
    } else if (heatMap && heatMap.comparing) {
        heatMap.comparing = false;
        showRanges();
    } else if (heatMap && state.base) {
        change({ base: null });
        showAll(false);
    } else if (heatMap && state.range)
        setRange(null, false);
}

async function copyStack() {
    const pane = chosenPane || (paneA.hovered >= 0 ? paneA : paneB.hovered >= 0 ? paneB : null);
    const node = pane ? (chosenPane ? pane.selected : pane.hovered) : -1;

    if (node < 0) {
        showToast("Select a box first.");
        return;
    }
    const names = pane.pathOf(node).map((frame) => nameOf(model, frame)), text = names.join("\n") + "\n";

    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const area = element("textarea", { class: "hidden", "aria-hidden": "true" });

        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
    showToast(`Copied ${formatCount(names.length)} frames.`);
}

const KEYS = {
    "/": () => byId("search").select(),
    "?": () => byId("help").showModal(),
    Escape: stepBack,
    1: () => setView("top"), 2: () => setView("bottom"), 3: () => setView("sandwich"),
    s: () => chosenPane && chosenPane.layout.tree.frame[chosenPane.selected] >= 0 &&
        openSandwich(chosenPane.layout.tree.frame[chosenPane.selected]),
    c: copyStack,
    i: () => byId("shape").click(),
    d: () => byId("theme").click(),
    t: () => byId("table-button").click(),
};

function onKey(event) {
    const typing = event.target.matches("input, select, textarea"), action = KEYS[event.key];

    if (byId("help").open || event.ctrlKey || event.altKey || event.metaKey || !action)
        return;
    if (typing && event.key !== "Escape")
        return;
    event.preventDefault();
    action();
    if (typing)
        paneA.canvas.focus();
}

function bind() {
    for (const button of document.querySelectorAll("[data-view]")) {
        button.addEventListener("click", () => setView(button.dataset.view));
        button.addEventListener("keydown", (event) => {
            const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key], all = [...document.querySelectorAll("[data-view]")];

            if (by) {
                const next = all[(all.indexOf(button) + by + all.length) % all.length];

                setView(next.dataset.view);
                next.focus();
            }
        });
    }
    for (const name of ["color", "order", "merge"])
        byId(name).addEventListener("change", () => {
            change({ [name]: byId(name).value, zoom: name === "merge" ? 0 : state.zoom });
            showAll(true);
        });
    byId("search").addEventListener("input", () => {
        clearTimeout(bind.timer);
        bind.timer = setTimeout(() => {
            change({ query: byId("search").value });
            showSearch();
        }, 120);
    });
    byId("shape").addEventListener("click", () => {
        change({ shape: state.shape === "flame" ? "icicle" : "flame" });
        showControls();
        showPicture(true);
    });
    byId("theme").addEventListener("click", () => {
        change({ theme: palette.dark ? "light" : "dark" });
        showTheme();
        showLegend();
        showHeatScale();
        table.fill();
    });
    systemDark.addEventListener("change", () => showAll(true));
    byId("table-button").addEventListener("click", () => {
        byId("side").hidden = !byId("side").hidden;
        byId("table-button").setAttribute("aria-pressed", String(!byId("side").hidden));
    });
    byId("reset").addEventListener("click", reset);
    byId("help-button").addEventListener("click", () => byId("help").showModal());
    byId("act-sandwich").addEventListener("click", () => KEYS.s());
    byId("act-copy").addEventListener("click", copyStack);
    byId("act-search").addEventListener("click", () => {
        change({ query: `^${quote(nameOf(model, chosenPane.layout.tree.frame[chosenPane.selected]))}$` });
        showSearch();
    });
    if (heatMap) {
        byId("range-clear").addEventListener("click", () => setRange(null, false));
        byId("base-clear").addEventListener("click", () => {
            change({ base: null });
            showAll(false);
        });
        byId("compare").addEventListener("click", () => {
            heatMap.comparing = !heatMap.comparing;
            showRanges();
        });
    }
    addEventListener("keydown", onKey);
    addEventListener("hashchange", () => {
        state = readAddress(defaults);
        showAll(true);
    });
}

bind();
showAll(true);
document.documentElement.dataset.ready = "yes";
