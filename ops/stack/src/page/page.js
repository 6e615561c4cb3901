// The demo page: polls head.json and a segment a second, and shows the items. Text is data: it
// only ever becomes a text node.

const LIST_ITEMS_MAX = 60;
const STAGE_ITEMS_MAX = 160;
const IDS_MAX = 4000;
const SCROLL_MS = 9000;
const ROW_PX = 34;
const GAP_PX = 24;

const byId = (id) => document.getElementById(id);
const stage = byId("stage");
const list = byId("list");
const rows = [];
const shown = new Set();
const recent = [];
let offsetMs = -Infinity;

const sleep = (ms) => new Promise((done) => setTimeout(done, Math.max(0, ms)));
const serverNow = () => Date.now() + offsetMs;

// The largest difference seen is the one with the least delay on the way.
function observe(nowMs) {
  offsetMs = Math.max(offsetMs, nowMs - Date.now());
}

function isNew(id) {
  if (shown.has(id)) return false;
  shown.add(id);
  if (shown.size > IDS_MAX) shown.delete(shown.values().next().value);
  return true;
}

function textOf(item) {
  if (item.kind === "gift") return `🎁 ×${item.gift.count} ${item.text ?? ""}`.trim();
  if (item.kind === "like") return "❤";
  return item.text ?? "";
}

// A row is free when its last comment has come in whole, and will be out before the new one, which
// may be faster, reaches the far edge.
function freeRow(width) {
  const count = Math.max(1, Math.floor((stage.clientHeight - 60) / ROW_PX));
  const now = performance.now();
  const stageWidth = stage.clientWidth;
  const speed = (stageWidth + width) / SCROLL_MS;
  for (let row = 0; row < count; row++) {
    const last = rows[row] ?? { inAt: 0, outAt: 0 };
    if (last.inAt <= now && last.outAt <= now + stageWidth / speed) {
      rows[row] = { inAt: now + (width + GAP_PX) / speed, outAt: now + SCROLL_MS };
      return row;
    }
  }
  return -1;
}

function fly(item, text) {
  if (document.hidden || stage.childElementCount > STAGE_ITEMS_MAX) return;
  const node = document.createElement("div");
  node.className = `flying ${item.kind}`;
  node.textContent = text;
  const style = item.style ?? { color: 0xffffff, mode: "scroll", size: "normal" };
  node.style.color = `#${style.color.toString(16).padStart(6, "0")}`;
  node.style.fontSize = { small: "17px", normal: "22px", large: "28px" }[style.size] ?? "22px";
  stage.append(node);
  if (style.mode === "top" || style.mode === "bottom") {
    node.classList.add("fixed");
    node.style[style.mode] = style.mode === "top" ? "12px" : "48px";
    setTimeout(() => node.remove(), 4000);
    return;
  }
  const row = freeRow(node.offsetWidth);
  if (row < 0) {
    node.remove();
    return;
  }
  node.style.top = `${10 + row * ROW_PX}px`;
  const [from, to] = [stage.clientWidth, -node.offsetWidth];
  const reverse = style.mode === "reverse";
  node
    .animate(
      [{ transform: `translateX(${reverse ? to : from}px)` }, { transform: `translateX(${reverse ? from : to}px)` }],
      { duration: SCROLL_MS, easing: "linear" },
    )
    .finished.then(() => node.remove(), () => node.remove());
}

function show(item) {
  const text = textOf(item);
  if (item.kind === "tombstone" || text === "") return;
  fly(item, text);
  const line = document.createElement("li");
  line.className = `item ${item.kind}`;
  const who = document.createElement("span");
  who.textContent = item.kind === "notice" ? "notice" : String(item.sender).slice(-4).padStart(4, "0");
  line.append(who, text);
  list.prepend(line);
  while (list.childElementCount > LIST_ITEMS_MAX) list.lastElementChild.remove();
  recent.push(performance.now());
}

// A slot's items are spread over the time until the next slot comes.
function spread(items, intervalMs) {
  items.forEach((item, index) => setTimeout(() => show(item), (index / items.length) * intervalMs));
}

function report(header) {
  byId("slot").textContent = header.slot;
  byId("online").textContent = header.online.toLocaleString("en");
  const end = header.epoch_ms + (header.slot + 1) * header.interval_ms;
  byId("delay").textContent = `${((serverNow() - end) / 1000).toFixed(1)} s`;
  while (recent.length > 0 && recent[0] < performance.now() - 5000) recent.shift();
  byId("rate").textContent = (recent.length / 5).toFixed(1);
}

async function json(url) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(5000) });
  if (!answer.ok) throw Object.assign(new Error(`${answer.status}`), { status: answer.status });
  return answer.json();
}

async function follow(origin, room) {
  const head = await json(`${origin}/dm/1/${room}/head.json`);
  observe(head.now_ms);
  const phaseMs = 200 + Math.random() * 100 + Math.random() * head.spread_ms;
  let slot = head.slot;
  let misses = 0;
  while (misses < 3) {
    const end = head.epoch_ms + (slot + 1) * head.interval_ms;
    await sleep(end + phaseMs - serverNow());
    if (document.hidden) {
      await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
      return;
    }
    try {
      const segment = await json(`${origin}/dm/1/${room}/${head.gen}/full/${slot}.json`);
      observe(segment.now_ms);
      misses = 0;
      spread([...segment.repeats, ...segment.items].filter((it) => isNew(it.id)), segment.interval_ms);
      report(segment);
      byId("state").textContent = "";
      if (segment.end !== undefined) return;
      slot += 1;
    } catch (error) {
      if (error.status === 410) return;
      misses += 1;
      slot += 1;
    }
  }
  throw new Error("three slots in a row did not come");
}

const { room, origin } = await json("page.json");
byId("room").textContent = room;
for (let wait = 1000; ; wait = Math.min(wait * 2, 30000)) {
  try {
    await follow(origin, room);
    wait = 500;
  } catch {
    byId("state").textContent = "waiting for the server…";
  }
  await sleep(Math.random() * wait);
}
