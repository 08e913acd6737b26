//! Chinese characters that also have a simplified form.

/// Returns the simplified form of a traditional character; any other is returned unchanged.
pub(crate) fn simplified(c: char) -> char {
    let (mut low, mut high) = (0, PAIRS.len() / PAIR);
    while low < high {
        let middle = (low + high) / 2;
        let mut pair = PAIRS[middle * PAIR..].chars();
        let (Some(traditional), Some(simplified)) = (pair.next(), pair.next()) else { return c };
        match c.cmp(&traditional) {
            std::cmp::Ordering::Equal => return simplified,
            std::cmp::Ordering::Less => high = middle,
            std::cmp::Ordering::Greater => low = middle + 1,
        }
    }
    c
}

/// The size of a pair in bytes: two characters of three.
const PAIR: usize = 6;

/// The commonest traditional characters, sorted, each followed by its simplified form.
const PAIRS: &str = "\
    佈布佔占併并來来係系俠侠倉仓個个們们側侧偵侦偽伪傑杰備备傳传債债傷伤僅仅僞伪僱雇價价儀仪\
    億亿償偿優优儲储兒儿內内兩两冊册冪幂凍冻凱凯別别刪删則则剛刚創创劃划劇剧劍剑劑剂勁劲動动\
    務务勝胜勞劳勢势勵励勻匀匯汇區区協协卻却厭厌參参吳吴員员唄呗問问啓启啟启喚唤單单嗎吗嘆叹\
    嘗尝噴喷嚮向嚴严囑嘱國国圍围園园圓圆圖图團团執执堅坚報报場场塊块墊垫壓压壘垒壞坏壽寿夠够\
    夢梦奪夺妝妆婦妇媽妈孫孙學学實实寧宁審审寫写寬宽寶宝將将專专尋寻對对導导尷尴層层屬属島岛\
    帳账帶带幣币幫帮庫库廠厂廢废廣广張张強强彈弹彙汇後后徑径從从復复徵征徹彻恆恒惡恶愛爱態态\
    慣惯慮虑憑凭憲宪憶忆應应懶懒懷怀懸悬戰战戲戏戶户拋抛掃扫掛挂採采換换損损搖摇搶抢撥拨擇择\
    擊击擔担據据擠挤擬拟擴扩擷撷擺摆擾扰攔拦攜携攝摄敗败敘叙敵敌數数斷断於于時时晝昼暢畅暫暂\
    曆历曉晓書书會会朧胧條条業业極极榮荣構构槓杠樂乐樓楼標标樣样樹树橋桥機机檔档檢检檯台櫃柜\
    權权歐欧歡欢歲岁歷历歸归殺杀殼壳毀毁氣气氫氢決决沒没況况淨净淺浅渦涡測测湊凑準准溫温滅灭\
    滾滚滿满漢汉漲涨漸渐潔洁潛潜潤润濾滤瀏浏灣湾災灾為为無无煙烟煩烦熱热燈灯燒烧營营爐炉爭争\
    爲为牆墙牽牵狀状猶犹獎奖獨独獲获獻献現现瑣琐環环產产畝亩畢毕畫画異异當当瘋疯療疗發发盜盗\
    監监盤盘眾众睏困矯矫硯砚碩硕確确碼码磚砖礎础禍祸禮礼稅税種种稱称穀谷積积穩稳窩窝窮穷窺窥\
    竊窃競竞筆笔筍笋箋笺節节範范築筑簡简簽签籃篮籤签糧粮糾纠紀纪約约紅红納纳純纯紙纸級级紛纷\
    紡纺細细終终組组結结絕绝絡络給给統统絲丝綁绑經经綜综綠绿維维綱纲網网緊紧緒绪線线締缔緣缘\
    編编緩缓練练緻致縣县縫缝縮缩縱纵總总績绩織织繞绕繪绘繫系繳缴繼继續续纜缆罰罚罷罢羅罗義义\
    習习翹翘聖圣聞闻聯联聰聪聲声職职聽听肅肃脈脉脫脱腦脑腳脚膚肤膠胶臉脸臨临臺台與与興兴舉举\
    舊旧艙舱艦舰莊庄華华萬万葉叶蓋盖薦荐藝艺藥药蘇苏蘋苹蘭兰處处虛虚號号蟲虫術术衛卫衝冲裏里\
    補补裝装裡里製制複复褲裤襲袭見见規规視视親亲覺觉覽览觀观觸触訂订計计訊讯訓训託托記记訪访\
    設设訴诉診诊註注詐诈評评詞词詢询試试詩诗話话該该詳详誌志認认誘诱語语誠诚誤误說说誰谁課课\
    調调談谈請请論论諮咨諾诺謀谋講讲謝谢謹谨證证識识譜谱譯译議议護护譽誉讀读變变讓让讚赞豐丰\
    貓猫貝贝負负財财貢贡貨货販贩貪贪貫贯責责貴贵買买貸贷費费貼贴賀贺資资賓宾賞赏賠赔賣卖賤贱\
    賦赋質质賬账賭赌賺赚購购賽赛贈赠贊赞贏赢趕赶趨趋跡迹踐践踴踊躍跃車车軌轨軍军軒轩軟软較较\
    載载輔辅輕轻輛辆輪轮輯辑輸输轉转轟轰辦办辭辞農农迴回這这連连週周進进運运過过達达違违遞递\
    遠远適适遲迟遷迁選选遺遗還还邊边郵邮鄉乡鄰邻醫医釋释釘钉針针鈕钮鉛铅銀银銅铜銷销鋁铝鋒锋\
    鋪铺鋼钢錄录錢钱錦锦錯错錶表鍋锅鍵键鎖锁鎮镇鏈链鏡镜鏽锈鐘钟鐵铁鑑鉴鑒鉴鑰钥鑽钻長长門门\
    閃闪閉闭開开閒闲間间閱阅闆板闊阔關关陣阵陳陈陸陆陽阳隊队階阶際际隨随險险隱隐隸隶隻只雖虽\
    雙双雜杂離离難难雲云電电霧雾靈灵靜静韓韩韻韵響响頁页頂顶項项順顺頌颂預预頓顿頗颇領领頭头\
    頻频題题額额顏颜願愿類类顯显風风飄飘飛飞飯饭飲饮飽饱餘余館馆馬马馮冯駐驻駕驾騎骑騙骗騰腾\
    驅驱驗验驚惊髒脏體体髮发鬆松鬥斗鬧闹魚鱼鮮鲜鳥鸟鴨鸭鵬鹏麗丽麥麦麼么黃黄點点黨党齊齐齒齿\
    齡龄龍龙龜龟";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_traditional_character_is_found() {
        let all: Vec<char> = PAIRS.chars().collect();
        assert_eq!(all.len() * PAIR, PAIRS.len() * 2);
        for pair in all.chunks(2) {
            assert_eq!(simplified(pair[0]), pair[1]);
            assert_eq!(simplified(pair[1]), pair[1]);
        }
    }
}
