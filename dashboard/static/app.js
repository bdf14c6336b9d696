// Draws the charts, keeps the page live, and makes tables sortable. Every page works without it, only less lively.
"use strict";

const POLL_MS = 2000;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function themed(layout, height, entries) {
  const narrow = window.innerWidth < 600;
  const axis = { gridcolor: css("--grid"), linecolor: css("--grid"), zerolinecolor: css("--grid"), automargin: true };
  const merged = {
    ...layout,
    // A narrow legend is a column above the plot: it gets room of its own instead of the plot's.
    height: Number(height) + (narrow ? 19 * entries : 0),
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: css("--text"), family: css("--font"), size: narrow ? 11 : 12 },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--grid"), font: { color: css("--text") } },
  };
  delete merged.template;
  for (const name of Object.keys(layout)) {
    if (/^[xy]axis/.test(name)) merged[name] = { ...axis, ...layout[name] };
    if (narrow && name === "xaxis") merged[name] = { ...merged[name], nticks: 4, tickangle: 0 };
  }
  return merged;
}

const legendEntries = (traces) => traces.filter((trace) => trace.showlegend !== false).length;

// The darkest two colours of the palette do not stand out from a dark ground; their lighter kin do.
const isDark = () => css("--scheme") === "dark";
const LIGHTER = { "#0072B2": "#4BA6E0", "#009E73": "#33BF96" };
function tinted(traces) {
  if (!isDark()) return traces;
  const lighter = (ink) => (ink?.color in LIGHTER ? { ...ink, color: LIGHTER[ink.color] } : ink);
  const inks = ["line", "marker"];
  // Plotly wants a part to be there or not, but never undefined.
  const given = (trace) => inks.filter((part) => part in trace).map((part) => [part, lighter(trace[part])]);
  return traces.map((trace) => ({ ...trace, ...Object.fromEntries(given(trace)) }));
}

async function draw(box) {
  try {
    const answer = await fetch(box.dataset.figure, { headers: { accept: "application/json" } });
    if (!answer.ok) throw new Error((await answer.json()).detail || answer.statusText);
    const figure = await answer.json();
    box.querySelector(".loading")?.remove();
    const empty = figure.data.every((trace) => !trace.x || trace.x.length === 0);
    if (empty) {
      box.innerHTML = '<p class="quiet loading">nothing in this range</p>';
      return;
    }
    const options = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
    await Plotly.react(box, tinted(figure.data), themed(figure.layout, box.dataset.height, legendEntries(figure.data)), options);
    box.dataset.drawn = "yes";
    tabulate(box.id);
  } catch (error) {
    box.innerHTML = "";
    const text = document.createElement("p");
    text.className = "badtext loading";
    text.textContent = `This chart could not be drawn: ${error.message}`;
    box.append(text);
  }
}

// A chart's numbers as a table, for those who do not see it: the latest moments, one column a line.
const ROWS = 48;
function tabulate(id) {
  const details = document.querySelector(`[data-numbers="${id}"]`);
  const chart = document.getElementById(id);
  if (!details?.open || !chart?.data) return;
  const named = chart.data.filter((trace) => trace.name && trace.showlegend !== false && trace.fill !== "toself");
  const moments = [...new Set(named.flatMap((trace) => [...trace.x]))].sort().slice(-ROWS).reverse();
  const values = named.map((trace) => new Map([...trace.x].map((at, i) => [at, trace.y[i]])));
  const table = document.createElement("table");
  table.className = "dense";
  table.createCaption().textContent = `The latest ${moments.length} moments, newest first`;
  const head = table.createTHead().insertRow();
  for (const text of ["time", ...named.map((trace) => trace.name)]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const at of moments) {
    const row = body.insertRow();
    const cell = document.createElement("th");
    cell.scope = "row";
    cell.textContent = String(at).slice(0, 16);
    row.append(cell);
    for (const known of values) {
      const value = known.get(at);
      row.insertCell().textContent = value === undefined || value === null ? "–" : Number(value.toFixed(1)).toLocaleString("en");
    }
  }
  const box = details.querySelector("div");
  box.className = "scroll";
  box.replaceChildren(table);
}
document.addEventListener("toggle", (event) => {
  if (event.target.matches?.("[data-numbers]")) tabulate(event.target.dataset.numbers);
}, true);

const drawAll = () => Promise.all([...document.querySelectorAll("[data-figure]")].map(draw));

// Live: when a new tick is there, fetch this page again and take over the parts that are marked as live.
async function refresh() {
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (document.getElementById("empty") && !fresh.getElementById("empty")) {
    location.reload();
    return;
  }
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (other && other.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.innerHTML = other.innerHTML;
  }
  restore();
  await drawAll();
}

// A page that is connected says little; what matters is how old the newest decision is, on the clock on the wall.
function age(light, seconds) {
  const minutes = Math.round(seconds / 60);
  const old = minutes < 2 ? "live" : minutes < 120 ? `newest decision ${minutes} min ago` : `newest decision ${Math.round(minutes / 60)} h ago`;
  if (light.textContent !== old) light.textContent = old;
  light.classList.toggle("stale", minutes >= 15);
}

let seen = document.body.dataset.tick;
async function poll() {
  const light = document.getElementById("live");
  try {
    if (!document.hidden) {
      const cluster = encodeURIComponent(document.body.dataset.cluster || "");
      const answer = await fetch(`/api/v1/ticks/latest?cluster=${cluster}`);
      const tick = await answer.json();
      if (answer.ok && tick.id && tick.id !== seen) {
        seen = tick.id;
        await refresh();
      }
      if (light && tick.wall_at_s) age(light, Date.now() / 1000 - tick.wall_at_s);
    }
  } catch {
    if (light) light.textContent = "not connected";
  }
  setTimeout(poll, POLL_MS);
}

// Tables: sort by a column, filter by name; both survive a refresh.
const kept = { sort: null, down: true, filter: "" };

function sortBy(table, column, down) {
  const value = (row) => {
    const cell = row.children[column];
    return cell?.dataset.value !== undefined ? Number(cell.dataset.value) : (cell?.textContent || "").trim();
  };
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y))) * (down ? -1 : 1);
  });
  table.tBodies[0].append(...rows);
  table.querySelectorAll("th[aria-sort]").forEach((head) => head.removeAttribute("aria-sort"));
  table.tHead.rows[0].children[column].setAttribute("aria-sort", down ? "descending" : "ascending");
}

function restore() {
  const table = document.querySelector("table.sortable");
  if (table && kept.sort !== null) sortBy(table, kept.sort, kept.down);
  for (const row of document.querySelectorAll("[data-name]")) {
    row.hidden = !row.dataset.name.toLowerCase().includes(kept.filter);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-sort]");
  if (!button) return;
  const column = Number(button.dataset.sort);
  kept.down = kept.sort === column ? !kept.down : column > 2;
  kept.sort = column;
  restore();
});
document.addEventListener("input", (event) => {
  if (!event.target.matches("[data-filter]")) return;
  kept.filter = event.target.value.toLowerCase();
  restore();
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.submit();
});

document.getElementById("theme")?.addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
  drawAll();
});

drawAll().then(() => {
  if (document.body.dataset.poll !== undefined) poll();
});
