// Every text of the page, in both languages.

const FR = {
  skip: "Aller à la question",
  menu: "Conversations",
  conversations: "Conversations",
  newConversation: "Nouvelle conversation",
  more: "Voir la suite",
  noConversations: "Rien encore : posez une première question.",
  untitled: "Sans titre",
  thread: "Conversation",
  trialTitle: "Modèle d’essai.",
  trialShort: "Ces réponses sont une démonstration. Comment brancher un vrai modèle ?",
  trialHow: "Arrêtez LintellO (Ctrl-C), puis relancez-le avec l’adresse et la clé de votre fournisseur :",
  trialAny: "Tout serveur compatible avec l’API d’OpenAI convient, y compris sur cette machine. « lintello doctor » dit ce qui est réglé.",
  welcome: "Une question qui mérite réflexion ?",
  welcomeMore: "LintellO la décompose, travaille chaque partie, se relit, puis répond. Vous voyez chaque étape.",
  examples: [
    "Compare trois façons de financer une coopérative, avec budget et étapes",
    "Quels sont les risques d’une migration de base de données, et comment les réduire ?",
    "C’est quoi le SEO ?",
  ],
  yourQuestion: "Votre question",
  placeholder: "Posez votre question… (Maj + Entrée : nouvelle ligne)",
  mode: "Mode",
  modeAuto: "Automatique",
  thinking: "Réflexion",
  auto: "auto",
  on: "oui",
  off: "non",
  send: "Demander",
  stop: "Arrêter",
  stopping: "Arrêt…",
  you: "Vous",
  thinkingNow: "Réflexion en cours",
  thought: "Réflexion",
  steps: (n) => (n > 1 ? `${n} étapes` : `${n} étape`),
  stepOf: (step, total, summary) => `Étape ${step} sur ${total} : ${summary}`,
  running: "en cours",
  completed: "terminée",
  failed: "échouée",
  tokens: (n) => `${number(n, "fr")} tokens`,
  waiting: "La question est partie…",
  returning: "Connexion coupée : reprise en cours…",
  answering: "La réponse arrive",
  answered: "La réponse est complète.",
  partial: "Réponse incomplète",
  noAnswer: "Cette question n’a pas reçu de réponse.",
  inMode: (name) => `Mode : ${name}`,
  remove: (title) => `Supprimer « ${title} »`,
  confirmRemove: (title) => `Supprimer « ${title} » et toute sa réflexion ? C’est définitif.`,
  removed: "Conversation supprimée.",
  opened: (title) => `Conversation ouverte : ${title}`,
  offline: "LintellO ne répond pas. Vérifiez qu’il tourne, puis réessayez.",
  lost: "La connexion s’est coupée. Rouvrez la conversation pour voir ce qui est gardé.",
  signIn: "Ce serveur demande un jeton d’accès ; cette page ne sait se passer de jeton qu’en mode local.",
  retry: "Vous pouvez reposer la question.",
  otherLanguage: "English",
};

const EN = {
  skip: "Skip to the question",
  menu: "Conversations",
  conversations: "Conversations",
  newConversation: "New conversation",
  more: "Show more",
  noConversations: "Nothing yet: ask a first question.",
  untitled: "Untitled",
  thread: "Conversation",
  trialTitle: "Trial model.",
  trialShort: "These answers are a demonstration. How do I connect a real model?",
  trialHow: "Stop LintellO (Ctrl-C), then start it again with your provider’s address and key:",
  trialAny: "Any server that speaks OpenAI’s API will do, one on this machine included. “lintello doctor” says what is set.",
  welcome: "A question worth thinking about?",
  welcomeMore: "LintellO takes it apart, works on each part, reviews itself, then answers. You see every step.",
  examples: [
    "Compare three ways to fund a cooperative, with budget and steps",
    "What are the risks of a database migration, and how can they be reduced?",
    "What is SEO?",
  ],
  yourQuestion: "Your question",
  placeholder: "Ask your question… (Shift + Enter: new line)",
  mode: "Mode",
  modeAuto: "Automatic",
  thinking: "Thinking",
  auto: "auto",
  on: "on",
  off: "off",
  send: "Ask",
  stop: "Stop",
  stopping: "Stopping…",
  you: "You",
  thinkingNow: "Thinking",
  thought: "Thinking",
  steps: (n) => (n === 1 ? `${n} step` : `${n} steps`),
  stepOf: (step, total, summary) => `Step ${step} of ${total}: ${summary}`,
  running: "running",
  completed: "completed",
  failed: "failed",
  tokens: (n) => `${number(n, "en")} tokens`,
  waiting: "The question is on its way…",
  returning: "Connection lost: coming back…",
  answering: "The answer is coming in",
  answered: "The answer is complete.",
  partial: "Incomplete answer",
  noAnswer: "This question wasn’t answered.",
  inMode: (name) => `Mode: ${name}`,
  remove: (title) => `Delete “${title}”`,
  confirmRemove: (title) => `Delete “${title}” and all its thinking? This can’t be undone.`,
  removed: "Conversation deleted.",
  opened: (title) => `Conversation opened: ${title}`,
  offline: "LintellO doesn’t answer. Check that it is running, then try again.",
  lost: "The connection broke. Open the conversation again to see what was kept.",
  signIn: "This server asks for an access token; this page can do without one in local mode only.",
  retry: "You can ask the question again.",
  otherLanguage: "Français",
};

function number(value, language) {
  return new Intl.NumberFormat(language).format(value);
}

function choose() {
  const asked = new URLSearchParams(location.search).get("lang");
  const wanted = asked ? [asked] : navigator.languages || [];
  for (const tag of wanted) {
    const language = tag.slice(0, 2).toLowerCase();
    if (language === "fr" || language === "en") return language;
  }
  return "fr";
}

export const language = choose();
export const text = language === "en" ? EN : FR;

/** Milliseconds for people: 0,8 s · 12 s · 2 min 5 s. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(seconds)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Put the texts of the chosen language into the page. */
export function translate() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = text[element.dataset.text];
  for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", text[element.dataset.label]);
  for (const element of document.querySelectorAll("[data-placeholder]")) element.placeholder = text[element.dataset.placeholder];
  const other = document.getElementById("language");
  const tag = language === "en" ? "fr" : "en";
  other.textContent = text.otherLanguage;
  other.lang = other.hreflang = tag;
  other.href = `?lang=${tag}`;
}
