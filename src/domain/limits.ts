/** Limits of interface.md and Sendwright's own. Lengths are counted in Unicode code points. */
export const RECIPIENTS_PER_FIELD = 50;
export const SUBJECT_LENGTH = 998;
export const BODY_LENGTH = 1_000_000;
export const TAGS = 10;
export const TAG_LENGTH = 256;
/** Maximum number of words in a search by subject; each costs a lookup. */
export const SEARCH_WORDS = 10;
export const HEADERS = 20;
export const HEADER_NAME_LENGTH = 126;
export const HEADER_VALUE_LENGTH = 870;
export const SCHEDULE_DAYS = 30;
export const EMAILS_PER_BATCH = 10_000;
export const IDEMPOTENCY_KEY_LENGTH = 256;
/** The maximum number of faults that an error response lists. */
export const FAULTS_PER_RESPONSE = 50;
export const PAGE_LENGTH = 50;
export const PAGE_LENGTH_MAX = 100;
export const SUPPRESSIONS_PER_REQUEST = 1_000;
export const KEY_NAME_LENGTH = 100;
export const DOMAINS_PER_KEY = 100;
export const RANGES_PER_KEY = 100;

export const CHAT_TEXT_LENGTH = 4_096;
export const SMS_TEXT_LENGTH = 1_600;
/** This and the following limits are ours: more than WhatsApp accepts, so that the provider's own error is reported. */
export const CAPTION_LENGTH = 4_096;
export const TEMPLATE_NAME_LENGTH = 512;
export const LANGUAGE_LENGTH = 35;
export const LINK_LENGTH = 8_192;
export const CHAT_FILENAME_LENGTH = 255;
/** Nesting of a template's components; WhatsApp uses at most ten levels. */
export const COMPONENTS_DEPTH = 20;
/** The body of a request for one chat-app message or SMS. Files are passed as links. */
export const CHAT_BODY_BYTES = 1_048_576;
export const TEMPLATES_PER_NUMBER = 1_000;
export const TEMPLATE_VARIABLES = 100;
export const TEMPLATE_VARIABLE_LENGTH = 256;

/** Octets, by RFC 5321 §4.5.3.1 and its erratum 1690. */
export const LOCAL_PART_OCTETS = 64;
export const ADDRESS_OCTETS = 254;
export const LABEL_OCTETS = 63;
/** A domain name as text, by RFC 1035 §2.3.4. */
export const DOMAIN_OCTETS = 253;
/** A complete address field with its display name: RFC 5322's line limit. interface.md defines none. */
export const MAILBOX_LENGTH = 998;

export const ATTACHMENTS = 20;
export const FILENAME_LENGTH = 255;
export const CONTENT_ID_LENGTH = 128;
/** Our limit for a type with its parameters. RFC 6838 §4.2 allows 127 characters for each half of the type. */
export const CONTENT_TYPE_LENGTH = 255;
/** The decoded size of all files of one email. */
export const ATTACHMENTS_BYTES = 30 * 1_048_576;
/** Our limit in UTF-16 units, larger than that of many browsers and servers. */
export const ATTACHMENT_PATH_LENGTH = 8_192;

/** The maximum number of emails in one workflow, which delivers them in several provider calls. */
export const GROUP_SIZE = 500;
