/* Memory Portal without a framework: the question before forgetting, what to do when a request fails, and what was typed when a
   sign-in ran out. Every action on the pages works without this file. */
"use strict";

(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  /* The question before forgetting */

  const ask = $("#ask");

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === ask) ask.showModal();
  });

  document.addEventListener("click", (event) => {
    if (ask?.open && (event.target === ask || event.target.closest("#ask [data-close]"))) {
      event.preventDefault();
      ask.close();
    }
    for (const menu of $$(".menu[open]")) if (!menu.contains(event.target)) menu.open = false;
  });

  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && document.activeElement?.closest?.(".menu[open]");
    if (menu) {
      menu.open = false;
      $("summary", menu).focus();
    }
  });

  /* When a request fails, say so and keep everything as it was */

  const trouble = (name) => {
    for (const notice of $$(".trouble > p")) notice.hidden = notice.id !== `trouble-${name}`;
    if (name) $(`#trouble-${name}`)?.scrollIntoView({ block: "center" });
    if (name && ask?.open) ask.close();
  };

  document.addEventListener("htmx:sendError", () => trouble("offline"));
  document.addEventListener("htmx:timeout", () => trouble("offline"));
  document.addEventListener("htmx:responseError", (event) => trouble(event.detail.xhr.status === 404 ? "gone" : "error"));
  window.addEventListener("online", () => trouble(""));

  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, successful, xhr } = event.detail;
    if (!successful) return;
    trouble("");
    if (xhr.getResponseHeader("HX-Redirect")) return;
    if (ask?.open && ask.contains(elt)) ask.close();
    const form = elt.closest?.("form[data-draft]");
    if (form && event.detail.requestConfig.verb === "post") drop(form.dataset.draft);
  });

  /* Addresses without empty parameters; the first page of every search */

  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.verb !== "get") return;
    const { formData } = event.detail;
    for (const [name, value] of [...formData.entries()]) if (value === "") formData.delete(name);
  });

  /* Where the keyboard goes when the row it was in is replaced */

  document.addEventListener("htmx:afterSettle", (event) => {
    counters(event.detail.elt);
    const news = $(".fact.fresh, #list > .sheet > .gone");
    if (news && event.detail.target?.id === "list") news.scrollIntoView({ block: "center" });
    if (document.activeElement !== document.body || ask?.open) return;
    const row = event.detail.elt.closest?.(".fact, .block, #list") ?? event.detail.elt;
    if (!row.isConnected) return;
    row.tabIndex = -1;
    row.focus({ preventScroll: true });
  });

  /* How much was typed, counted as the server counts: by code points */

  const count = (counter) => {
    const field = document.getElementById(counter.dataset.for);
    if (!field) return;
    const length = [...field.value].length;
    counter.textContent = `${length} / ${counter.dataset.limit}`;
    counter.classList.toggle("over", length > Number(counter.dataset.limit));
  };
  const counters = (within) => $$(".counter[data-for]", within.isConnected ? within : document).forEach(count);

  /* What was typed when the sign-in ran out: kept on this device, in this tab, for this customer only */

  const who = document.body.dataset.who;
  const PREFIX = "draft:";
  const RETURNING = "draft-returning";
  const store = {
    get: (key) => { try { return JSON.parse(sessionStorage.getItem(key)); } catch { return null; } },
    set: (key, value) => { try { sessionStorage.setItem(key, JSON.stringify(value)); } catch { /* storage is off */ } },
    remove: (key) => { try { sessionStorage.removeItem(key); } catch { /* storage is off */ } },
    keys: () => { try { return Object.keys(sessionStorage); } catch { return []; } },
  };
  const drop = (name) => store.remove(PREFIX + name);
  const dropAll = () => store.keys().filter((key) => key.startsWith("draft")).forEach(store.remove);

  document.addEventListener("input", (event) => {
    for (const counter of $$(`.counter[data-for="${event.target.id}"]`)) count(counter);
    const form = event.target.closest("form[data-draft]");
    if (!form || !who) return;
    const fields = Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "csrfmiddlewaretoken"));
    store.set(PREFIX + form.dataset.draft, { who, fields });
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.getResponseHeader("HX-Redirect")) store.set(RETURNING, true);
  });
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (event.detail.xhr.getResponseHeader("HX-Redirect")) store.set(RETURNING, true);
  });
  document.addEventListener("click", (event) => {
    const cancel = event.target.closest("[data-drops]");
    if (cancel) drop(cancel.dataset.drops);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("[data-forget-drafts]")) dropAll();
  });

  const putBack = (form) => {
    const draft = store.get(PREFIX + form.dataset.draft);
    if (!draft || draft.who !== who) return;
    for (const [name, value] of Object.entries(draft.fields)) if (form.elements[name]) form.elements[name].value = value;
    form.closest("details")?.setAttribute("open", "");
    counters(form);
    form.elements.value?.focus();
    store.remove(RETURNING);
  };

  const comeBack = () => {
    const kept = store.keys().filter((key) => key.startsWith(PREFIX));
    if (!who) {
      for (const note of $$("[data-kept-draft]")) note.hidden = !(store.get(RETURNING) && kept.length);
      return;
    }
    if (kept.some((key) => store.get(key)?.who !== who)) return dropAll();
    if (!store.get(RETURNING)) return kept.forEach(store.remove);
    document.addEventListener("htmx:load", (event) => $$("form[data-draft]", event.detail.elt).forEach(putBack));
    for (const key of kept) {
      const name = key.slice(PREFIX.length);
      const form = $(`form[data-draft="${CSS.escape(name)}"]`);
      if (form) putBack(form);
      else $(`[data-opens="${CSS.escape(name)}"]`)?.click();
    }
  };

  /* How many are ticked */

  document.addEventListener("change", (event) => {
    const label = event.target.form?.getAttribute("id") === "picked" && $("[data-picked]");
    if (!label) return;
    label.dataset.empty ??= label.textContent;
    const ticked = $$('input[form="picked"]:checked').length;
    label.textContent = ticked ? `✓ ${ticked}` : label.dataset.empty;
  });

  /* Printing needs a script; without one the browser's own menu does it */

  for (const button of $$("[data-prints]")) {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
  }

  /* A host's link goes on by itself, unless the browser only looks ahead */

  const goOn = () => $("form[data-goes-on]")?.requestSubmit();
  if (document.prerendering) document.addEventListener("prerenderingchange", goOn, { once: true });
  else goOn();

  counters(document.documentElement);
  document.addEventListener("DOMContentLoaded", comeBack); // after htmx, whose links it may follow
})();
