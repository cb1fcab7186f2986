"""How somebody else is spoken of: relatives, friends, colleagues, and the sentences about them. A table, no code.
English, German, Spanish, Chinese (both scripts). Each row is one regular expression and meets folded text.
Imports nothing.
"""

_KIN_EN = (
    r"(?:step|grand|god|great-?grand|foster |half-?)?-?(?:daughter|son|mother|father|mom|mum|mommy|mummy|dad"
    r"|daddy|brother|sister|child|children|kid|parent|ma|pa|twin)s?"
    r"(?:[- ]in[- ]law)?|wife|husband|spouse|partner|fianc[eé]e?|boyfriend|girlfriend|baby|toddler|newborn"
    r"|grandma|grandpa|granny|nana|aunt|auntie"
    r"|uncle|cousin|nephew|niece|friend|best friend|roommate|flatmate|housemate|neighbou?r|boss|manager"
    r"|colleague|co-?worker|assistant|nanny|caregiver|carer"
    r"|ex-?(?:wife|husband|boyfriend|girlfriend|partner)?|family|relative|relatives|teenager|teen|guest|tenant"
    r"|landlord|student|teacher|in-laws|better half|other half|siblings?|buddy|mate"
)
_KIN_DE = (
    r"(?:stief|enkel|groß|schwieger|paten|ur|halb|zwillings)?(?:tochter|töchter|sohn|söhne|mutter|vater|bruder"
    r"|brüder|schwester|kind|kinder|eltern|sohnes|mama|papa|opa|oma)\w{0,2}"
    r"|frau|mann|ehefrau|ehemann|lebensgefährt\w+|partner(?:in)?|freund(?:in|e|es|innen)?|verlobte\w?|baby"
    r"|säugling|kleinkind|enkel\w*|tante|onkel|cousin\w*|neffen?|nichten?"
    r"|mitbewohner\w*|nachbar\w*|chef(?:in)?|kolleg\w+|ex-?(?:frau|mann|freund\w*)?|familie|schwager"
    r"|schwägerin|geschwister|zwillinge|gäste|gast|mieter\w*|kumpel|verwandte\w?"
)
_KIN_ES = (
    r"hij[oa]s?|hijastr[oa]|madre|padre|padres|mamá|papá|herman[oa]s?|espos[oa]|marido|mujer|pareja|novi[oa]"
    r"|prometid[oa]|bebé|niet[oa]s?|abuel[oa]s?|tí[oa]s?|prim[oa]s?|sobrin[oa]s?"
    r"|amig[oa]s?|compañer[oa]s?|vecin[oa]s?|jef[ea]|suegr[oa]s?|cuñad[oa]s?|yerno|nuera|ex|familia|niñ[oa]s?"
    r"|gemel[oa]s|padrastro|madrastra|ahijad[oa]|colega|inquilin[oa]|invitad[oa]s?|chic[oa]s?"
)
_KIN_ZH = (
    r"女儿|女兒|儿子|兒子|孩子|小孩|宝宝|寶寶|老婆|太太|妻子|媳妇|媳婦|老公|丈夫|爱人|愛人|男朋友|女朋友|男友"
    r"|女友|未婚妻|未婚夫|妈妈|媽媽|母亲|母親|老妈|老媽|爸爸|父亲|父親|老爸|父母|爸妈|爸媽"
    r"|哥哥|弟弟|姐姐|姊姊|妹妹|兄弟|姐妹|爷爷|爺爺|奶奶|外公|外婆|姥姥|姥爷|阿公|阿嬤|阿姨|姑姑|舅舅|叔叔"
    r"|伯伯|表哥|表弟|表姐|表妹|堂哥|堂弟|侄子|侄女|外甥|孙子|孫子|孙女|孫女"
    r"|公公|婆婆|岳母|岳父|丈母娘"
    r"|朋友|闺蜜|閨蜜|同事|老板|老闆|室友|邻居|鄰居|同学|同學|家人|家里人|双胞胎|雙胞胎|保姆|前妻|前夫|前任"
)
_DOES = (
    r"is|are|was|were|has|have|had|likes?|loves?|needs?|wears?|can|cannot|can't|could|doesn't|don't|does|do"
    r"|turns?|turned|lives?|hates?|prefers?|eats?|drinks?|works?|wants?|studies"
    r"|plays?|named|called|just|also|only|never|always|takes?|gets?|got|goes|speaks?|uses?|owns?|will|won't"
    r"|isn't|aren't|hasn't|suffers?|collects?|enjoys?|dislikes?|drives?|started|who|whose|'s"
)

OTHER_PEOPLE: dict[str, str] = {
    "my daughter": (
        rf"\b(?:my|our|his|her|their|(?:the )?(?:customer|user|client)'s"
        rf"|whose) (?:[\w'-]+ ){{0,3}}?(?:{_KIN_EN})(?:'s|s')?\b(?!-friendly)"
    ),
    "daughter is": (
        rf"(?:^|[.;:,] |\band |\bthat |\bbecause |\bif |\bthe )(?:(?:older|younger|elder|eldest|oldest|youngest"
        rf"|little|teenage|late|new|two|three|twin|only|adult"
        rf"|best) ){{0,2}}(?:{_KIN_EN})(?:'s [\w-]+(?: [\w-]+)?)? (?:{_DOES})\b"
    ),
    "has a daughter": (
        r"\b(?:has|have|with|for|had) (?:an?|two|three|four|five|twin|\d) (?:[\w'-]+ ){0,2}(?:daughter|son|child"
        r"|children|kid|wife|husband|brother|sister|grandchild|grandson|granddaughter|nephew|niece|toddler|newborn"
        r"|roommate|boyfriend|girlfriend|partner|fianc[eé]e?|friend|colleague)(?:ren|s)?\b"
    ),
    "he or she": (
        rf"^(?:she|he|they|er|sie|él|ella) (?:{_DOES}|ist|hat|mag|braucht|trägt|isst|wohnt|es|tiene|está|le gusta"
        rf"|necesita|vive|come)\b"
    ),
    "a friend of mine": rf"\b(?:{_KIN_EN}) of (?:mine|hers|his|ours|theirs)\b",
    "meine Tochter": rf"\b(?:mein|unser|sein|ihr|deren|dessen)(?:e[mnrs]?)? (?:[\w-]+ ){{0,3}}?(?:{_KIN_DE})\b",
    "Tochter ist": (
        rf"(?:^|[.;:,] |\bund |\bdass |\bweil )(?:(?:der|die|das|ältere\w?|jüngere\w?|kleine\w?|zwei|drei"
        rf"|beide\w?) ){{0,2}}(?:{_KIN_DE}) (?:ist|sind|hat|haben|war|waren|mag|mögen|braucht|trägt|kann|isst|wohnt"
        rf"|arbeitet|liebt|hasst|wird|leidet|heißt|heisst|spielt|verträgt|möchte|studiert)\b"
    ),
    "hat eine Tochter": (
        rf"\b(?:hat|habe|haben|mit|für) (?:ein|zwei|drei|vier|\d)\w{{0,2}} (?:[\w-]+ ){{0,2}}(?:{_KIN_DE})\b"
    ),
    "mi hija": rf"\b(?:mi|mis|nuestr[oa]s?|su|sus|cuy[oa]s?) (?:[\w-]+ ){{0,2}}?(?:{_KIN_ES})\b",
    "la hija es": (
        rf"(?:^|[.;:,] |\by |\bque |\bporque )(?:(?:el|la|los|las|un|una) )?(?:{_KIN_ES}) (?:[\w-]+ )?(?:es|son"
        rf"|está|están|tiene|tienen|necesita|prefiere|odia|usa|lleva|come|vive|trabaja|cumple|le|les|se|no|puede"
        rf"|estudia|fue|quiere|padece|sufre|toma)\b"
    ),
    "tiene una hija": rf"\b(?:tengo|tiene|con|para) (?:un|una|dos|tres|\d) (?:[\w-]+ )?(?:{_KIN_ES})\b",
    "我女儿": (
        rf"(?:我|我们|我們|咱|他|她|客户|客戶|用户|用戶)(?:的|家|家的|家里的|家裡的)?(?:大|小|二|老|两个|兩個|一个"
        rf"|一個|几个|幾個|新)?(?:{_KIN_ZH}|先生|姐|妹|哥|弟"
        rf"|妈|媽|爸|奶|爷|爺|娃|侄|男人|女人)"
    ),
    "女儿是": (
        rf"(?:^|[,.;:、。，；] ?|因为|因為|但是|但|而且|和|给|給|为|為|帮|幫|有(?:一|两|兩|三|个|個|一个|一個|两个"
        rf"|兩個|位)*)(?:大|小|二|老|两个|兩個|一个|一個|刚"
        rf"|剛)?(?:{_KIN_ZH})"
    ),
    "他她": (r"^(?:他|她|他们|她们|他們|她們)(?:是|有|喜欢|喜歡|不|对|對|要|会|會|爱|愛|住|在|很|今年|今|也|从|從|只)"),
}
