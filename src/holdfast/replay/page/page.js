"use strict";
// Draws the recording that is chosen, as chart.py draws the first, and shows the figures of a call. Text is only ever
// set as text.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const GLYPHS = {
    offload: "M-2.5 12V4h5v8z",
    reduction: "M-5 3h10l-5 10z",
    failure: "M-4 3l8 9M4 3l-8 9",
  };
  const KINDS = Object.keys(GLYPHS);
  const NEAR = 6;
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [...document.querySelectorAll("figure.chart")];
  const select = document.getElementById("recording");
  const near = document.getElementById("near");
  let scale = null;
  let traces = [];
  let chosen = null;

  const exact = (number) => number.toLocaleString("en-US");

  function percent(part, whole) {
    if (!whole) return "–";
    let tenths = Math.floor((1000 * part) / whole + 0.5);
    if (part > 0 && part < whole) tenths = Math.min(999, Math.max(1, tenths));
    const rest = tenths % 10;
    return `${exact((tenths - rest) / 10)}${rest ? `.${rest}` : ""}\u00a0%`;
  }

  function running(differences) {
    let sum = 0;
    return differences.map((difference) => (sum += difference));
  }

  function decoded(series) {
    const calls = running(series.calls);
    const columns = series.parts.map(running);
    const rewritten = new Set(series.rewritten);
    let before = 0;
    const steps = calls.map((call, place) => {
      const parts = columns.map((column) => column[place]);
      const tokens = parts.reduce((sum, part) => sum + part, 0);
      const cached = before + series.cached[place];
      before = tokens;
      return { call, parts, tokens, cached, rewritten: rewritten.has(place) };
    });
    return { ...series, steps, marks: series.marks.map(([step, kind, what]) => ({ step, kind, what })) };
  }

  function made(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  const height = (tokens) => 1000 - Math.floor((1000 * tokens) / scale.top + 0.5);
  const across = (step) => `${((100 * (step + 0.5)) / Math.max(1, scale.steps)).toFixed(2)}%`;

  function area(heights, floor) {
    if (!heights.length) return "";
    return `M0 ${floor}${heights.map((each) => `V${Math.min(each, floor)}h1`).join("")}V${floor}z`;
  }

  function line(x1, x2, y1, y2, kind) {
    return made("line", { x1, x2, y1, y2, class: kind });
  }

  function drawAreas(chart, trace) {
    const svg = chart.querySelector(".areas");
    svg.setAttribute("viewBox", `0 0 ${Math.max(1, scale.steps)} 1000`);
    const sums = trace.steps.map((step) => running(step.parts));
    const paths = [...svg.children].reverse();
    paths.forEach((path, part) => path.setAttribute("d", area(sums.map((each) => height(each[part])), 1000)));
  }

  function drawOverflow(chart, trace) {
    const path = chart.querySelector("clipPath path");
    const heights = scale.window > 0 ? trace.steps.map((step) => height(step.tokens)) : [];
    path.setAttribute("d", area(heights, scale.window > 0 ? height(scale.window) : 0));
    path.setAttribute("transform", `scale(${1 / Math.max(1, scale.steps)} 0.001)`);
  }

  function drawScale(chart) {
    const texts = scale.ticks.map(([y, label]) => made("text", { x: "100%", y: `${y}%`, dy: ".32em" }, label));
    chart.querySelector(".gutter").replaceChildren(...texts);
    chart.querySelector(".grids").replaceChildren(...scale.ticks.map(([y]) => line(0, "100%", `${y}%`, `${y}%`, "grid")));
    chart.querySelector(".calls .last").textContent = exact(scale.calls);
    const group = chart.querySelector(".window-group");
    if (!group) return;
    const isShown = scale.window <= scale.top;
    const y = isShown ? `${height(scale.window) / 10}%` : "0%";
    const told = `window ${exact(scale.window)}`;
    const [dashes, label] = group.children;
    dashes.setAttribute("x2", isShown ? "100%" : "0%");
    dashes.setAttribute("y1", y);
    dashes.setAttribute("y2", y);
    label.setAttribute("y", y);
    label.setAttribute("dy", isShown ? "-.45em" : "1.1em");
    label.textContent = isShown ? told : `↑ ${told}`;
  }

  function drawBeyond(chart, trace) {
    const peak = trace.steps.length ? trace.steps[trace.peak].tokens : 0;
    chart.querySelector(".beyond").textContent = peak > scale.top ? `↑ ${exact(peak)}` : "";
  }

  function drawMarks(chart, trace) {
    const painted = [...trace.marks].sort((one, other) => KINDS.indexOf(one.kind) - KINDS.indexOf(other.kind));
    const glyphs = painted.map(({ step, kind, what }) => {
      const path = made("path", { d: GLYPHS[kind], class: `mark ${kind}` }, made("title", {}, what));
      return made("svg", { x: across(step) }, path);
    });
    chart.querySelector(".lane").replaceChildren(...glyphs);
    const cuts = trace.marks.filter(({ kind }) => kind !== "offload").map(({ step }) => across(step));
    chart.querySelector(".cuts").replaceChildren(...cuts.map((x) => line(x, x, 0, "100%", "cut")));
  }

  function tell(chart, trace, place, word) {
    const step = trace.steps[place];
    chart.querySelector(".cursor").setAttribute("x1", across(place));
    chart.querySelector(".cursor").setAttribute("x2", across(place));
    const at = step
      ? `${word} ${exact(step.call)}: ${exact(step.tokens)} tokens, ${percent(step.cached, step.tokens)} cached` +
        (step.rewritten ? ", rewritten" : "")
      : trace.steps.length ? "ended before this call" : "no requests";
    const mark = trace.marks.find((each) => each.step === place);
    chart.querySelector(".at").textContent = at;
    chart.querySelector(".event").textContent = mark ? mark.what : "";
    const figures = [...chart.querySelectorAll(".readout b")].reverse();
    figures.forEach((figure, part) => (figure.textContent = exact(step ? step.parts[part] : 0)));
    const frame = chart.querySelector(".frame");
    frame.setAttribute("aria-valuenow", place + 1);
    frame.setAttribute("aria-valuetext", mark ? `${at}. ${mark.what}` : at);
  }

  function show(place) {
    chosen = Math.min(Math.max(0, place), Math.max(0, scale.steps - 1));
    charts.forEach((chart, number) => tell(chart, traces[number], chosen, "Call"));
  }

  function rest() {
    chosen = null;
    charts.forEach((chart, number) => tell(chart, traces[number], traces[number].peak, "Peak, call"));
  }

  function choose() {
    const recording = data.recordings[Number(select.value)];
    near.parentElement.hidden = !recording.near;
    near.parentElement.querySelector("span").textContent = recording.near ? `zoom to ${recording.near.to}` : "";
    scale = { ...recording, ...((near.checked && recording.near) || recording.whole) };
    traces = scale.series.map(decoded);
    charts.forEach((chart, place) => {
      const trace = traces[place];
      chart.querySelector(".caption").textContent = trace.caption;
      const name = chart.querySelector("h3").textContent;
      chart.querySelector(".plot").setAttribute("aria-label", `Context under ${name}: ${trace.caption}`);
      chart.querySelector(".frame").setAttribute("aria-valuemax", Math.max(1, scale.steps));
      drawAreas(chart, trace);
      drawOverflow(chart, trace);
      drawScale(chart);
      drawBeyond(chart, trace);
      drawMarks(chart, trace);
    });
    rest();
  }

  function chooseAnother() {
    near.checked = Boolean(data.recordings[Number(select.value)].near?.first);
    choose();
  }

  // A mark is narrower than a finger, and a call often narrower than a pixel: near a mark, the mark is meant.
  function pointed(event, chart, trace) {
    const box = chart.querySelector(".plot").getBoundingClientRect();
    const position = ((event.clientX - box.left) / box.width) * scale.steps;
    const reach = ((event.pointerType === "touch" ? 2 * NEAR : NEAR) / box.width) * scale.steps;
    const distance = (mark) => Math.abs(mark.step + 0.5 - position);
    const near = trace.marks.filter((mark) => distance(mark) <= reach);
    near.sort((one, other) => distance(one) - distance(other));
    return near.length ? near[0].step : Math.floor(position);
  }

  function keyed(event, trace) {
    const now = chosen ?? trace.peak;
    const wide = event.shiftKey ? 10 : 1;
    const steps = trace.marks.map((mark) => mark.step);
    const places = {
      ArrowRight: now + wide,
      ArrowUp: now + wide,
      ArrowLeft: now - wide,
      ArrowDown: now - wide,
      Home: 0,
      End: scale.steps - 1,
      PageDown: steps.find((step) => step > now) ?? now,
      PageUp: steps.filter((step) => step < now).pop() ?? now,
    };
    if (event.key === "Escape") rest();
    else if (event.key in places) show(places[event.key]);
    else return;
    event.preventDefault();
  }

  function listen(chart, number) {
    const frame = chart.querySelector(".frame");
    frame.tabIndex = 0;
    frame.setAttribute("role", "slider");
    frame.setAttribute("aria-label", `Calls under ${chart.querySelector("h3").textContent}`);
    frame.setAttribute("aria-valuemin", 1);
    frame.setAttribute("aria-describedby", "keys");
    frame.addEventListener("pointermove", (event) => show(pointed(event, chart, traces[number])));
    frame.addEventListener("pointerdown", (event) => show(pointed(event, chart, traces[number])));
    frame.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && rest());
    frame.addEventListener("keydown", (event) => keyed(event, traces[number]));
    frame.addEventListener("blur", rest);
  }

  function letChoose() {
    select.hidden = data.recordings.length < 2;
    document.getElementById("still").hidden = !select.hidden;
    for (const id of ["keys", "left-out"]) document.getElementById(id)?.removeAttribute("hidden");
    select.addEventListener("change", chooseAnother);
    near.addEventListener("change", choose);
    charts.forEach(listen);
    // Also at first: a browser that goes back to the page may have kept the choice.
    chooseAnother();
  }

  function letSwitchTheme() {
    const button = document.getElementById("theme");
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)");
    let dark = system.matches;
    const label = () => (button.textContent = dark ? "Light" : "Dark");
    button.addEventListener("click", () => {
      dark = !dark;
      root.style.colorScheme = dark ? "dark" : "light";
      label();
    });
    system.addEventListener("change", () => {
      if (!root.style.colorScheme) dark = system.matches;
      label();
    });
    label();
    button.hidden = false;
  }

  letSwitchTheme();
  if (charts.length) letChoose();
})();
