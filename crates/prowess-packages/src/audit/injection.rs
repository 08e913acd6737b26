//! Words that turn an agent against its user.

use super::pattern::{
    E, I,
    Scope::{Description, Words},
    W, patterns,
};

patterns! {
    OVERRIDE_INSTRUCTIONS Words(E), ["ignore", "disregard", "forget", "discard", "abandon"],
        r"\b(?:ignor|disregard|forget|discard|abandon)(?:e|ing)?\b\W{1,6}(?:\w+\W{1,6}){0,3}?_?(?:previous|prior|earlier|above|preceding|existing|original|former|initial|system|safety)(?:\b|_)(?:\W{1,6}\w+){0,4}?\W{1,6}_?(?:instructions?|directives?|guidelines|prompts?|rules|polic(?:y|ies)|guardrails|safeguards)\b",
        "the text tells the agent to ignore its earlier instructions";
    OVERRIDE_INSTRUCTIONS Words(W), ["ignore", "disregard"],
        r"\b(?:ignore|disregard)\W{1,3}(?:all|any|every|your|the user'?s?)\W{1,3}(?:\w+\W{1,3}){0,2}?(?:instructions?|directives|polic(?:y|ies)|guardrails|requests?|wishes)\b",
        "the text tells the agent to ignore instructions";
    OVERRIDE_INSTRUCTIONS Words(E), ["overrid", "supersede", "bypass", "circumvent", "precedence", "priority"],
        r"\b(?:overrid\w{1,3}|supersedes?|bypass(?:es)?|circumvents?|takes? (?:precedence|priority) over)\W{1,4}(?:\w+\W{1,3}){0,5}?(?:system prompts?|system (?:messages?|instructions?)|safety (?:polic|guideline|rule|instruction|check|filter)\w*|safety and \w+ polic\w+|content polic\w+|operator'?s? (?:polic|instruction|rule)\w*)",
        "the text claims to stand above the system prompt or the policy";
    OVERRIDE_INSTRUCTIONS Words(E), ["you are now", "act as", "enter", "switch to"],
        r"\b(?:you are now|act as|enter|switch to)\W{1,3}(?:\w+\W{1,3}){0,4}?(?:maintenance|developer|debug|god|unrestricted|jailbr\w+|dan|unfiltered)\W{1,3}(?:mode|ai|assistant|agent)\b[^\n]{0,160}\b(?:safety|restrictions?|obey|polic\w+|filters?|rules|anything)\b",
        "the text puts the agent into a mode without its rules";
    OVERRIDE_INSTRUCTIONS Words(E), ["safety", "guardrail"],
        r"\b(?:all\W{1,3})?(?:safety|guardrails?)\W{1,3}(?:checks?|filters?|guidelines|polic\w+|restrictions?)?\W{0,3}(?:are|is)\W{1,3}(?:now\W{1,3})?(?:off|disabled|lifted|suspended|void)\b",
        "the text declares that safety checks are off";
    OVERRIDE_INSTRUCTIONS Words(E), ["without restrictions", "without any restrictions", "no restrictions", "without limitations"],
        r"\b(?:from now on|you|act|behave|operate)\b[^\n.]{0,60}\b(?:without (?:any )?(?:ethical |safety |content )?(?:restrictions|limitations)|no restrictions)\b[^\n]{0,80}\b(?:user|hidden|polic\w+|ethic\w+|ignore)\b",
        "the text tells the agent to act without restrictions";

    OVERRIDE_INSTRUCTIONS Words(E), ["you were told", "you have been told", "you were given", "you have been given", "you know", "you were instructed"],
        r"\b(?:forget|ignore|disregard)\W{1,3}(?:everything|anything|all|whatever)\W{1,3}(?:that\W{1,3})?you\W{1,3}(?:were|have been|know)\b",
        "the text tells the agent to forget what it was told";
    OVERRIDE_INSTRUCTIONS Words(E), ["not apply", "longer apply", "n't apply", "are void", "no longer valid"],
        r"\b(?:safety|system|previous|prior|earlier|other|your|security)\W{1,3}(?:\w+\W{1,3}){0,2}?(?:guidelines|instructions?|rules|polic(?:y|ies)|restrictions|prompts?)\b[^\n.]{0,60}\b(?:do(?:es)?(?: not|n'?t)|no longer)\W{1,3}apply\b[^\n]{0,120}\b(?:skill|comply|you|every|here|session)\b",
        "the text declares that other instructions do not apply";
    CONCEAL_FROM_USER Words(E), ["need to know", "has to know", "needs to know", "should know", "must know"],
        r"\b(?:user|human|operator)s?\W{1,3}(?:(?:do(?:es)?|must|should|need)(?: not|n'?t)(?: ever)?)\W{1,3}(?:need to |have to )?(?:know|see|notice|find out|learn)\b(?:\W{1,3}(?:about|of|that)\W{1,3}(?:it|this|these|what you|you)\b|\W{0,3}(?:$|[.!;)\n]))",
        "the text tells the agent to keep something from the user";
    CONCEAL_FROM_USER Words(W), ["user asks", "users ask", "anyone asks", "asked about", "asked what"],
        r"\b(?:if|when)\W{1,3}(?:(?:the )?users?|anyone|asked)\W{1,3}(?:ever )?(?:asks?\W{1,3})?(?:what|whether|if|about|why)\b[^\n]{0,60}\b(?:you|upload\w*|this|sent|ran)\b[^\n]{0,40}\b(?:say|claim|pretend|answer|reply|deny)\b[^\n]{0,30}\b(?:nothing|did ?n[o']t|was ?n[o']t|no (?:data|files?|upload)|it)\b",
        "the text tells the agent what to claim if the user asks";
    CONCEAL_FROM_USER Words(E), ["tell", "inform", "notify", "alert"],
        r#"\b(?:do not|don'?t|never|must not|without|avoid)\W{1,4}(?:ever |also |explicitly )?(?:tell|inform|notify|alert)(?:ing)?\W{1,4}(?:the |your |any )?(?:user|human|operator)s?\b(?:\W{1,3}(?:about|of)\W{1,3}(?:this|it|these|that|any of|what you)\b|\W{1,3}that (?:you|this|it)\W{1,3}(?:did|ran|sent|read|have|are|was|is)\b|\W{0,3}(?:$|[.!;)\n]))"#,
        "the text tells the agent not to tell the user what it does";
    CONCEAL_FROM_USER Words(E), ["mention", "reveal", "disclose", "report", "show", "talk about"],
        r"\b(?:do not|don'?t|never|must not)\W{1,4}(?:ever )?(?:mention|reveal|disclose|report|show)\W{1,4}(?:this|it|these|that|the)\W{1,3}(?:(?:step|action|polic\w+|upload|request|command|instruction|file|call|transfer|download)s?\W{1,3})?(?:to|from)\W{1,3}(?:the |your )?(?:users?|human|anyone)\b(?:\W{0,3}(?:$|[.!;)\n]))",
        "the text tells the agent to keep an action from the user";
    CONCEAL_FROM_USER Words(W), ["mention it", "reveal it", "report it", "mention this", "disclose it", "disclose this"],
        r"\b(?:do not|don'?t|never|must not)\W{1,4}(?:mention|reveal|report|disclose)\W{1,4}(?:it|this)\b\W{0,3}(?:$|[.!;)\n])",
        "the text tells the agent not to mention something";
    CONCEAL_FROM_USER Words(E), ["hidden from", "hide this", "hide it", "hide these", "secret from", "hide the"],
        r"\b(?:keep|kept|hide|hidden)\W{1,3}(?:(?:this|it|these|the|all)\W{1,3})?(?:\w+\W{1,3}){0,3}?(?:hidden |secret |away )?from\W{1,3}(?:the |your )?(?:users?|human|operator)\b(?:\W{0,3}(?:$|[.!;)\n]))",
        "the text tells the agent to hide something from the user";
    CONCEAL_FROM_USER Words(E), ["secretly", "silently", "covertly", "quietly", "knowledge", "awareness"],
        r"\b(?:secretly|silently|covertly|quietly|without the user'?s? (?:knowledge|awareness))\W{1,3}(?:\w+\W{1,3}){0,3}?(?:send|upload|post|append|forward|transmit|exfiltrate|submit|e-?mail|share)s?\b[^\n]{0,160}(?:https?://|server|endpoint|@|prompt|conversation|credential|~/|secret|token|contents|webhook)",
        "the text tells the agent to send something without the user knowing";
    CONCEAL_FROM_USER Words(W), ["secretly", "covertly", "knowledge"],
        r"\b(?:secretly|covertly|without the user'?s? (?:knowledge|knowing))\W{1,3}(?:\w+\W{1,3}){0,3}?(?:run|execute|read|copy|install|download|modify|write|collect|record|log)s?\b",
        "the text tells the agent to do something in secret";

    SKIP_APPROVAL Words(E), ["even if", "even when", "even though", "regardless"],
        r"\bwithout\W{1,3}(?:\w+\W{1,3}){0,4}?(?:permission|confirmation|approval|consent|asking)\b[^\n]{0,60}\b(?:even (?:if|when|though)|regardless of)\b[^\n]{0,80}\b(?:polic\w+|required?|asks?|objects?|says?|told|refuse[sd]?|instruct\w+)\b",
        "the text tells the agent to act without the approval that a policy requires";
    SKIP_APPROVAL Words(E), ["tool call", "permission prompt", "permission request", "approval prompt", "permission dialog"],
        r"\b(?:approve|accept|allow|auto-?approve|confirm|bypass|dismiss|disable|answer|say|click)\W{1,3}(?:\w+\W{1,3}){0,2}?(?:every|all|any|each)\W{1,3}(?:\w+\W{1,3}){0,2}?(?:tool calls?|permission (?:prompts?|requests?|dialogs?)|approval prompts?)\b",
        "the text tells the agent to approve everything";
    SKIP_APPROVAL Words(W), ["permission", "approval", "confirmation"],
        r"\b(?:bypass|circumvent|disable|suppress)\W{1,3}(?:\w+\W{1,3}){0,3}?(?:permission|approval|confirmation)\W{1,3}(?:prompts?|requests?|checks?|dialogs?|requirements?|gates?)\b",
        "the text tells the agent to get around approvals";
    SKIP_APPROVAL Words(I), ["permission", "approval", "confirmation", "consent"],
        r"\b(?:without|do not|don'?t|never|no need to)\W{1,3}(?:ask|asking|wait|waiting|request|requesting|seek|require)(?:ing)?\W{1,3}(?:\w+\W{1,3}){0,5}?(?:permission|approval|confirmation|consent)\b",
        "the text tells the agent to act without asking";

    CLAIMS_EVERY_REQUEST Description(W), ["every", "all ", "any "],
        r"\b(?:for|on|to|in|with|at)\W{1,3}(?:literally )?(?:every|all|any)\W{1,3}(?:single |user )?(?:requests?|tasks?|messages?|prompts?|conversations?|quer(?:y|ies)|questions?)\b[^\n]{0,120}\b(?:before|instead of|over|prior to|ahead of|no matter)\b",
        "the description claims every request before other skills";
    CLAIMS_EVERY_REQUEST Description(W), ["other skill"],
        r"\b(?:before|instead of|over|in preference to|replaces?|ahead of)\W{1,3}(?:any|all|every)\W{1,3}(?:of the )?other skills?\b",
        "the description puts the skill before all others";
}
