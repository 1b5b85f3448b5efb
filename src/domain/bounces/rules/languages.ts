/**
 * Phrases in languages other than English, for the rules in `rules.ts`. Latin letters are written without accents, and ё as
 * е.
 */
export const LANGUAGES = {
  blockList: [
    'schwarze[nr]? liste|liste noire|lista (?:negra|nera)|lista neagra|czarn\\w+ list|черн\\S{1,4} спис|ブラックリスト',
    '黑名单|reputacion|reputacao|reputazione|репутаци',
  ],
  reverseDns: ['resolution inverse|dns inverso|reverso'],
  greylist: ['liste grise'],
  rateLimited: [
    'trop de (?:connexions?|messages?|mails|destinataires)',
    'zu viele (?:verbindung|nachricht|mail|e?mail|empfanger)',
    'demasiad[oa]s (?:conexiones|mensajes|correos|destinatarios)|muit[oa]s (?:conex|mensag)',
    'tropp[ie] (?:conness|messagg)|слишком (?:много|часто)|zbyt (?:wiele|duzo) (?:polacz|wiadomosc)|連続|頻繁|過于频繁',
    '过于频繁|频率|连接数|过多',
  ],
  network: [
    'adresse ip … (?:bloque|refuse)|ip … gesperrt',
    '(?:votre|vos|ihre?|su|seu|vostro|tuo) (?:serveur|server|ip|domaine?|messages?|emails?|mail ?server|servidor|dominio) … (?:bloque|refuse|rejete|gesperrt|blockiert|abgelehnt|rechaz|rejeit|blocc|rifiut)',
    '(?:direccion|endereco|indirizzo) ip|ip адрес',
  ],
  sender: [
    '(?:expediteur|absender)\\w*\\b … (?:refus|rejet|bloqu|invalide|inconnu|interdit|abgelehnt|unbekannt|gesperrt|blockiert|ungultig|nicht)',
    '(?:remitente|mittente|remetente)\\b … (?:rechaz|rifiut|rejeit|bloquead|bloccat|invalid|no |non |nao )',
    '(?:nadawc\\w*|afzender)\\b … (?:odrzucon|zablokowan|geweigerd|geblokkeerd)|отправител\\S{0,12} … (?:заблокирован|отклонен|запрещен)',
  ],
  /** Words for the recipient, its mailbox and address. */
  recipient: [
    'destin(?:at|ataire)?\\w*\\b|utente|utilisateur|usuario|uzytkownik|benutzer|empfanger|empfaenger|odbior|adresat',
    'indirizzo|adress|direccion|endereco|casella|casilla|buzon|boite|skrzynk|postfach|kont[oa]\\b|compte|cuenta',
    'ящик|адрес|получател|пользовател|ユーザ|宛先|用户|收件人|邮箱|地址',
  ],
  mailboxFull: [
    '(?:postfach|mailbox|konto|speicher\\w*|posteingang|briefkasten|benutzer)\\b … (?:\\bvoll|uberfull|ueberfuell|uberlauf|erschopft|uberschritten|ueberschritten|zu ?viele)',
    'kontingent|speicher(?:platz|limit)',
    '(?:boite|messagerie|compte|espace|bal|destinataire|quota)\\b … (?:pleine?\\b|satur|depass|insuffisan)',
    '(?:buzon|casilla|cuenta|cuota|espacio|bandeja|correo)\\b … (?:llen[oa]\\b|exced|superad|insuficiente|agotad|sobre ?pasad)',
    'sobre cuota|(?:caixa|cota|quota|espaco|conta)\\b … (?:chei[ao]|lotad|exced|esgotad|insuficiente|ultrapass)',
    '(?:casella|quota|spazio|mailbox|cassetta)\\b … (?:pien[ao]|superat|esaurit|insufficiente)',
    '(?:skrzynk\\w*|limit|konto|przestrzen)\\b … (?:pelna|pelne|przepeln|przekrocz|zapelnion)',
    'ящик\\S{0,12} … (?:переполн|полон|заполнен)|переполнен|превыш\\S{1,12} … (?:квот|лимит|объ)',
    'квот\\S{0,12} … превыш|недостаточно места|(?:メールボックス|受信箱|容量|ボックス).{0,20}(?:いっぱい|一杯|超|不足|オーバー|満杯)',
    '(?:邮箱|信箱|容量|空间|空間|郵箱|收件箱).{0,12}(?:满|滿|不足|超|已用完)',
  ],
  messageTooLarge: [
    'zu gross|nachrichtengrosse|grosse … (?:uberschr|ueberschr|limit)|maximale grosse|zu grosse|trop (?:gros|grand|volumineu|lourd|long)\\w*',
    'taille … (?:max|depass|limite|trop|message)|demasiado grande|tamano|muito grande|tamanho|troppo grande',
    'dimension\\w+|zbyt (?:duz|wielk)\\w*|rozmiar|слишком (?:больш|велик)|размер\\S{0,12} … превыш',
    'превыш\\S{0,12} … размер|サイズ|大きすぎ|(?:邮件|郵件|附件).{0,12}(?:过大|太大|過大|超过|超出)',
  ],
  virus: ['вирус|ウイルス|病毒|wirus|viren\\b|schadsoftware|maliciel'],
  spam: [
    'pourriel|(?:correo|mensaje) no deseado|indesejad|indesiderat|niechcian|спам|迷惑|スパム|垃圾',
    'rechazado por (?:el )?filtro',
  ],
  content: ['pieces? jointes?|(?:anhang|anhange|dateianhang)\\b|adjunto|anexo|allegat|zalacznik|вложени|添付|附件'],
  mailboxInactive: [
    '(?:konto|postfach|benutzer\\w*|empfanger\\w*|adresse)\\b … (?:deaktiviert|gesperrt|inaktiv|geschlossen|stillgelegt|abgeschaltet|gekundigt|gelo?scht|nicht (?:mehr )?aktiv)',
    '(?:compte|boite|adresse|utilisateur|bal|messagerie|destinataire)\\b … (?:desactiv|inacti|suspendu|ferme|bloque|archive|resili|cloture|verrouill)',
    '(?:cuenta|buzon|usuario|casilla|direccion|destinatario)\\b … (?:desactiv|inactiv|suspendid|deshabilit|bloquead|cancelad|cerrad|inhabilit|expirad|caducad)',
    '(?:conta|caixa|usuario|endereco)\\b … (?:desativ|inativ|suspens|bloquead|cancelad|encerrad|desabilit)',
    '(?:account|casella|utente|indirizzo)\\b … (?:disattiv|sospes|disabilit|bloccat|inattiv|chius)',
    '(?:kont[oa]|skrzynka|uzytkownik)\\b … (?:zablokowan|nieaktywn|zawieszon|wylaczon|zamkniet)',
    '(?:ящик|учетн|аккаунт|пользовател|запись|адрес)\\S{0,12} … (?:заблокирован|отключен|неактив|приостановлен|деактив|закрыт)',
    '(?:アカウント|メールボックス|アドレス|ユーザ).{0,20}(?:停止|無効|休止|凍結|ロック)',
    '(?:帐号|账号|账户|用户|邮箱|帳號|帳戶|信箱).{0,12}(?:冻结|停用|禁用|锁定|暂停|注销|过期|凍結)',
  ],
  dnsFailure: [
    '(?:domain\\w*|domane|dominio|domena) … (?:nicht gefunden|desconocid|desconhecid|existiert nicht|unbekannt|introuvable|inconnu|inexistant|no existe|nao existe|inesistente|sconosciut|nie istnieje|не найден|не существует)',
    'домен … не|(?:域名|ドメイン).{0,12}(?:不存在|存在しない|見つかり|无法解析)',
  ],
  mailboxNotFound: [
    '(?:benutzer|empfanger|empfaenger|postfach|mailbox|adresse|user|konto|teilnehmer)\\w*\\b … (?:unbekannt|nicht (?:gefunden|bekannt|vorhanden|existent|verfugbar|mehr)|existiert nicht|ungultig|ungueltig)',
    '(?:unbekannte[rn]?|kein|keine|ungultige[rn]?) (?:benutzer|empfanger|empfaenger|postfach|adresse|mailbox)',
    '(?:utilisateur|destinataire|adresse|boite|compte|usager)\\w*\\b … (?:inconnu|introuvable|inexistant|invalide|existe (?:pas|plus)|pas valide|non trouve)',
    'aucun (?:utilisateur|destinataire)',
    '(?:usuario|destinatario|buzon|cuenta|direccion|casilla|conta|caixa|endereco)\\w*\\b … (?:desconocid|no existe|inexistente|invalid|no (?:fue )?encontrad|nao (?:existe|encontrad)|desconhecid|no valid|incorrect|nao e valid|no es valid)',
    '(?:utente|user|destin(?:atario)?|casella|indirizzo|account)\\b … (?:sconosciut|errat|inesistente|non esist\\w*|non trovat|non valid)',
    '(?:uzytkownik\\w*|adres\\w*|skrzynka|konto|odbiorc\\w*)\\b … (?:nieznany|nie istnieje|nie znalezion|nieprawidlow)|nie ma takie|no hay nadie',
    '(?:пользовател|ящик|адрес|получател|абонент)\\S{0,12} … (?:не найден|не существует|неизвест|не зарегистр|недоступен)',
    'неизвестн\\S{1,12} (?:пользовател|адрес|получател)|нет такого|несуществующ',
    '(?:ユーザ|宛先|アドレス|メールボックス|受信者|アカウント).{0,20}(?:存在し|見つかり|不明|ありません|無効)',
    '(?:用户|收件人|邮箱|地址|帐号|账号|用戶|信箱|帳號|地址).{0,12}(?:不存在|未找到|无效|找不到|无此|沒有)|无此用户|查無此',
    '(?:gebruiker|ontvanger|adres)\\b … (?:onbekend|bestaat niet)|onbekende (?:gebruiker|ontvanger)|anvandaren … finns inte|okand (?:mottagare|anvandare)',
    '(?:bruger|bruker)\\w* … (?:findes|finnes) ikke|ukj?endt? (?:bruker|bruger|modtager|mottaker)',
    '(?:uzivatel|prijemce|schranka)\\w* … neexist|neznam\\w+ (?:prijemce|uzivatel)|nincs ilyen|ismeretlen',
    'utilizator\\w* … inexistent|nu exista|(?:kullanici|alici|adres)\\w* … bulunamadi',
  ],
  policy: ['richtlinie|politique|politica|polityk|политик|ポリシー|策略'],
  busy: [
    'interner fehler|erreur interne|error interno|errore interno|erro interno|внутренн\\S{2,3} ошибк|内部错误',
    'spater|mas tarde|mais tarde|piu tardi|pozniej|позже|稍后|しばらく',
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;
